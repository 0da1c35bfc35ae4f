/** Files that a runner sends of a session that core gave up while it could not reach core. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import { addRecording, appendChunk } from '../../support/core/reports.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { blobParts, HOLDER } from '../boot.ts';
import { openContext, textOf } from '../contexts/runs.ts';
import { ENGINES, LEASE_MS, newSession, openBench, T0 } from '../store/engines.ts';

const test = suite('core/sessions/given-up');
const LOST_MS = 300_000;
const LATE_MS = 600_000;

type App = Awaited<ReturnType<typeof openContext>>;

/** A runner's calls for the session of that lease, each with its own file. */
function filesOf(app: App, leaseId: string) {
  const { blobs, runners } = app.clients;
  const page = { leaseId, pageId: 0, startMs: 0, endMs: 0, url: 'http://a/', complete: false };
  return {
    context: () => app.save(leaseId, 'late'),
    async download() {
      const parts = blobParts({ kind: 'DOWNLOAD', leaseId }, 'late');
      const { blobId } = await blobs.writeBlob(parts, app.asRunner);
      await runners.addDownload({ leaseId, blobId, filename: 'late.txt' }, app.asRunner);
    },
    log: () =>
      appendChunk(app, { leaseId, number: 0, size: 1, count: 1, entries: Buffer.from('x') }),
    recording: () => addRecording(app, { ...page, parts: [] }),
  };
}

/** Core has not heard of the runner for so long that it ends its work. */
async function giveUp(app: App, invocationId: string): Promise<void> {
  app.clock.advance(LOST_MS + 1);
  const { invocations } = app.clients;
  await until(async () => {
    const request = { id: invocationId };
    const { invocation } = await invocations.getInvocation(request, app.asProject);
    return invocation?.status === 'FAILED';
  });
}

test('what a runner sends within ten minutes after the session was given up is kept', async () => {
  await using app = await openContext();
  const run = await app.start();
  await giveUp(app, run.invocationId);
  app.clock.advance(LATE_MS - 60_000);
  for (const send of Object.values(filesOf(app, run.leaseId))) await send();
  assert.is(await textOf(app, await app.start()), 'late');
  const wanted = { sessionId: run.sessionId, createdAfter: undefined, createdBefore: undefined };
  const { downloads } = await app.clients.downloads.listDownloads(wanted, app.asProject);
  assert.equal(
    downloads.map(({ filename }) => filename),
    ['late.txt'],
  );
  assert.is((await app.end(run.leaseId)).accepted, false, 'its outcome stays');
});

test('ten minutes after core gave a session up nothing of it is stored', async () => {
  await using app = await openContext();
  const run = await app.start();
  await giveUp(app, run.invocationId);
  app.clock.advance(LATE_MS);
  for (const [name, send] of Object.entries(filesOf(app, run.leaseId))) {
    assert.is((await faultOf(send() as Promise<unknown>)).reason, 'LEASE_LOST', name);
  }
});

test('a later save of another session is not replaced', async () => {
  await using app = await openContext();
  const run = await app.start();
  await giveUp(app, run.invocationId);
  const next = await app.start();
  await app.save(next.leaseId, 'newer');
  const blobs = app.files();
  const { saved, replaced } = await filesOf(app, run.leaseId).context();
  assert.equal({ saved, replaced }, { saved: false, replaced: true });
  assert.equal(app.files(), blobs, 'the late content is dropped');
  assert.is(await textOf(app, await app.start()), 'newer');
});

test('an instance that a newer one has replaced sends nothing', async () => {
  await using app = await openContext();
  const { leaseId } = await app.start();
  await app.clients.runners.registerRunner({ ...HOLDER, instanceId: 'second' }, app.asRunner);
  for (const [name, send] of Object.entries(filesOf(app, leaseId))) {
    assert.is((await faultOf(send() as Promise<unknown>)).reason, 'LEASE_LOST', name);
  }
});

for (const engine of ENGINES) {
  test(`${engine.name}: an older save is dropped, with its place in the quota`, async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const pair = { id: newId(), publicKey: 'p', privateKey: Buffer.from('k'), at: T0 };
    await store.addKeyPair(pair);
    const contextId = newId();
    await store.createContext({ id: contextId, projectId, name: null, nameKey: null, at: T0 });
    const params = JSON.stringify({ browserSettings: { context: { persist: true } } });
    const take = async (at: number) => {
      const session = { ...newSession(projectId), contextId, params, at, waitUntil: at + 60_000 };
      await store.createSession(session);
      const { leaseId } = must((await bench.lease('session', 1, at))[0], 'work');
      await store.startSession({ leaseId, startedAt: at, at });
      return leaseId;
    };
    const save = async (leaseId: string, at: number) => {
      const blobId = newId();
      const blob = { projectId, kind: 'CONTEXT', size: 7, sha256: 'aa', createdAt: at } as const;
      await store.addBlob({ id: blobId, ...blob });
      return { blobId, ...(await store.saveContext({ leaseId, endedAfter: T0, blobId, at })) };
    };
    const late = await take(T0);
    await store.sweepWork({ at: T0 + LOST_MS, max: 9 });
    const next = await take(T0 + LOST_MS);
    assert.is((await save(next, T0 + LOST_MS)).outcome, 'saved');
    const { blobId, ...older } = await save(late, T0 + LOST_MS);
    assert.equal(older, { outcome: 'older', dropped: [blobId] });
    assert.is(await store.getBlob(blobId), undefined);
  });

  test(`${engine.name}: a late chunk counts none of the same report twice`, async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const take = async (at: number) => {
      await store.createSession({ ...newSession(projectId), at, waitUntil: at + 60_000 });
      const { leaseId } = must((await bench.lease('session', 1, at))[0], 'work');
      await store.startSession({ leaseId, startedAt: at, at });
      return leaseId;
    };
    const late = await take(T0);
    const at = T0 + LOST_MS;
    await store.sweepWork({ at, max: 9 });
    const live = await take(at);
    const chunk = { number: 0, entries: Buffer.alloc(1_000), count: 1, size: 1_000 };
    const quota = { kinds: ['SESSION_LOG'] as const, maxBytes: 2_500 };
    const { chunks } = await store.reportRunner({
      ...HOLDER,
      leaseIds: [live],
      leaseMs: LEASE_MS,
      at,
      chunks: [
        { ...chunk, leaseId: live },
        { ...chunk, leaseId: late },
      ],
      lines: [],
      chunksMaxBytes: 1 << 20,
      logQuota: quota,
      lineLimits: { maxBytes: 1, linesMax: 1, marker: '' },
      recordings: [],
      recordingLimits: { quota: { kinds: ['RECORDING'], maxBytes: 1 }, endedAfter: T0 },
    });
    assert.equal(chunks, ['kept', 'kept']);
  });

  test(`${engine.name}: late files of a session that its creator started`, async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const none = { contextId: null, extensionId: null, userMetadata: null };
    const times = { timeoutMs: 60_000, at: T0, waitUntil: T0 + 60_000 };
    const settings = { region: 'us-west-2', keepAlive: false, params: '{}', ...none, ...times };
    const { id } = await store.createSession({ id: newId(), projectId, ...settings });
    const { leaseId } = must((await bench.lease('session'))[0], 'work');
    await store.startSession({ leaseId, startedAt: T0, at: T0 });
    await store.sweepWork({ at: T0 + LOST_MS, max: 9 });
    const lease = { leaseId, endedAfter: T0 };
    const late = (one: typeof lease) => store.findLateSession({ ...one, isRecording: false });
    assert.equal(await late(lease), { sessionId: id, projectId });
    const chunk = { number: 0, entries: Buffer.from('a'), count: 1, size: 9, maxBytes: 99 };
    assert.is(await store.appendSessionLog({ ...chunk, ...lease, at: T0 }), 'kept');
    assert.is(await store.appendSessionLog({ ...chunk, ...lease, number: 1, at: T0 }), 'kept');
    const over = { leaseId, endedAfter: T0 + LOST_MS };
    assert.is(await late(over), undefined);
    assert.is(await store.appendSessionLog({ ...chunk, ...over, number: 2, at: T0 }), 'lost');
    const blobId = newId();
    const blob = { projectId, kind: 'DOWNLOAD', size: 1, sha256: 'aa', createdAt: T0 } as const;
    await store.addBlob({ id: blobId, ...blob });
    const download = { id: newId(), blobId, filename: 'a', mimeType: 'b', at: T0 };
    assert.is(await store.addDownload({ ...download, ...over }), 'lost');
    assert.is(await store.addDownload({ ...download, ...lease }), 'added');
    const end = { status: 'COMPLETED', reason: '', proxyBytes: 0, at: T0 } as const;
    assert.is(await store.completeSession({ leaseId, ...end }), false);
  });
}

test.run();
