/**
 * Events of sessions: each is written once, by the transaction that changes the session or adds
 * its file. proto/spec/webhooks.md 2, 11.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { EVENT_TYPES } from '../../../core/webhooks/webhooks.ts';
import { must } from '../../../proto/common/must.ts';
import { rowsOf } from '../../support/core/database.ts';
import { until } from '../../support/poll.ts';
import { type Booted, blobParts } from '../boot.ts';
import { add, bring, end, run } from '../sessions/recordings/recorded.ts';
import { openSessions } from '../sessions/runs.ts';

const events = suite('core/webhooks/session-events');

type Told = { type: string; data: Record<string, unknown> };

async function openHeard() {
  const app = await openSessions({ TABERN_SWEEP_MS: '50' });
  const eventTypes = EVENT_TYPES.filter((type) => type.startsWith('sessions.'));
  const wanted = { endpoint: 'https://example.com/', eventTypes };
  await app.clients.webhooks.createWebhook(wanted, app.asProject);
  return app;
}

/** The events about a resource, oldest first. */
async function toldOf({ dir }: Booted, resourceId: string): Promise<Told[]> {
  const bodies = await rowsOf<{ body: Buffer }>(
    dir,
    'SELECT body FROM events WHERE resource_id = ? ORDER BY seq',
    resourceId,
  );
  return bodies.map(({ body }) => JSON.parse(String(body)) as Told);
}

const typesOf = (told: readonly Told[]) => told.map(({ type }) => type.replace('sessions.', ''));
const LIVED = ['created', 'running', 'ended'];

events('a session tells of its creation, its browser and its end, however often', async () => {
  await using app = await openHeard();
  const userMetadata = { order: '17' };
  const { session, leaseId } = await app.run({ userMetadata });
  await app.begin(leaseId);
  assert.equal(typesOf(await toldOf(app, session.id)), LIVED.slice(0, 2));
  assert.is(await app.end(leaseId, 'ERROR', 'The browser crashed'), true);
  await app.end(leaseId, 'COMPLETED');
  const told = await toldOf(app, session.id);
  assert.equal(typesOf(told), LIVED);
  const [created, running, ended] = told.map(({ data }) => data);
  assert.equal(
    [created, running, ended].map((data) => data?.['status']),
    ['PENDING', 'RUNNING', 'ERROR'],
  );
  assert.is(ended?.['endReason'], 'The browser crashed');
  assert.equal(ended?.['userMetadata'], userMetadata);
  assert.type(ended?.['endedAt'], 'string');
  assert.is(created?.['endedAt'], undefined);
  const secret = must(session.signingKey, 'a signing key');
  assert.not.match(JSON.stringify(told), secret);
});

events('a release, a lost lease and a wait without a runner tell of the end once', async () => {
  await using app = await openHeard();
  const waiting = app.create();
  const { id } = must(
    (
      await until(async () => {
        const { sessions } = await app.clients.sessions.listSessions({ label: [] }, app.asProject);
        return sessions.length > 0 && sessions;
      })
    )[0],
    'a waiting session',
  );
  await app.release(id);
  await app.release(id);
  await waiting.catch(() => undefined);
  assert.equal(typesOf(await toldOf(app, id)), ['created', 'ended']);
  const lost = await app.run();
  app.clock.advance(300_001);
  await until(async () => (await toldOf(app, lost.session.id)).length === LIVED.length);
  assert.is(await app.end(lost.leaseId), false);
  assert.equal(typesOf(await toldOf(app, lost.session.id)), LIVED);
});

events("an invocation's session tells, too", async () => {
  await using app = await openHeard();
  const { sessionId } = await app.invoke(await app.publish({ name: 'f' }));
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  await end(app, { id: sessionId, leaseId });
  assert.equal(typesOf(await toldOf(app, sessionId)), LIVED);
});

events(
  'recordings are ready once: after the end, with the last part of the last page',
  async () => {
    await using app = await openHeard();
    const before = await run(app);
    await bring(app, before);
    assert.equal(typesOf(await toldOf(app, before.id)), LIVED.slice(0, 2));
    await end(app, before);
    assert.equal(typesOf(await toldOf(app, before.id)), [...LIVED, 'recording.ready']);

    const after = await run(app);
    await bring(app, after);
    await add(app, { leaseId: after.leaseId, pageId: 1 });
    await end(app, after);
    assert.equal(typesOf(await toldOf(app, after.id)), LIVED);
    await add(app, { leaseId: after.leaseId, pageId: 1, endMs: 9, complete: true });
    await add(app, { leaseId: after.leaseId, pageId: 1, endMs: 9, complete: true });
    const told = await toldOf(app, after.id);
    assert.equal(typesOf(told), [...LIVED, 'recording.ready']);
    assert.equal(told.at(-1)?.data, { sessionId: after.id });
  },
);

events('each downloaded file is told once, with its name and hash', async () => {
  await using app = await openHeard();
  const { id: sessionId, leaseId } = await run(app);
  for (const filename of ['a.pdf', 'b.csv']) {
    const parts = blobParts({ kind: 'DOWNLOAD', leaseId }, filename);
    const { blobId } = await app.clients.blobs.writeBlob(parts, app.asRunner);
    await app.clients.runners.addDownload({ leaseId, blobId, filename }, app.asRunner);
    await app.clients.runners.addDownload({ leaseId, blobId, filename }, app.asRunner);
  }
  const times = { createdAfter: undefined, createdBefore: undefined };
  const wanted = { sessionId, ...times };
  const { downloads } = await app.clients.downloads.listDownloads(wanted, app.asProject);
  assert.is(downloads.length, 2);
  for (const { id, filename, checksum } of downloads) {
    const [told, ...more] = await toldOf(app, id);
    assert.equal([told?.type, more], ['sessions.download.ready', []]);
    const { data } = must(told, 'an event');
    assert.equal(
      [data['filename'], data['sha256'], data['sessionId']],
      [filename, checksum, sessionId],
    );
  }
});

events.run();
