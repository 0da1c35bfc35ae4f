/** What the store tells of a watched project: each change of a status, by kind and id. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { bootDeliveries, OK } from '../../support/core/deliveries.ts';

const test = suite('core/console/triggers');

/** Deliveries of one project that is watched, and one that is not. */
async function openWatched() {
  const app = bootDeliveries();
  const { store, projectId } = app;
  await store.watchChanges(projectId);
  const told = async (change: () => unknown) => {
    await change();
    const changes = await store.takeChanges(projectId);
    return changes.map(({ kind, ids }) => `${kind} ${ids?.length ?? 'many'}`).sort();
  };
  return { ...app, told };
}

test('webhooks and deliveries are told at each change of their state', async () => {
  await using app = await openWatched();
  const { told, webhooks, caller } = app;
  assert.equal(await told(() => app.addWebhook()), ['webhooks 1']);
  assert.equal(await told(() => app.emit()), ['deliveries 1']);
  const claims: Awaited<ReturnType<typeof app.claim>> = [];
  assert.equal(await told(async () => claims.push(...(await app.claim()))), ['deliveries 1']);
  const failed = () => app.report(claims.map((claim) => [claim, {}]));
  assert.equal(await told(failed), ['deliveries 1', 'webhooks 1'], 'failing since now');
  app.clock.advance(3_600_000);
  const again = await app.claim();
  await told(() => undefined);
  const delivered = () => app.report(again.map((claim) => [claim, OK]));
  assert.equal(await told(delivered), ['deliveries 1', 'webhooks 1'], 'it no longer fails');
  const { data } = await webhooks.listWebhooks({}, caller);
  const id = data[0]?.id ?? '';
  assert.equal(await told(() => webhooks.listDeliveries({ id }, caller)), [], 'nothing changed');
  assert.equal(await told(() => webhooks.deleteWebhook({ id }, caller)), ['webhooks 1']);
});

test('a session is told at its start, at the request of its end, and at its end', async () => {
  await using app = await openWatched();
  const { told, store, projectId, clock } = app;
  const at = clock.now();
  const session = { id: newId(), projectId, region: 'us-west-2', params: '{}', at, waitUntil: at };
  const rest = { contextId: null, extensionId: null, keepAlive: false, userMetadata: null };
  const create = () => store.createSession({ ...session, ...rest, timeoutMs: undefined });
  assert.equal(await told(create), ['sessions 1']);
  const holder = { runnerId: 'runner', instanceId: 'first' };
  const lease = { ...holder, leaseIds: [newId()], leaseMs: 60_000, at };
  await store.registerRunner({ ...holder, at });
  await store.leaseWork({ ...lease, kind: 'session' });
  await store.renewLeases(lease);
  const leaseId = lease.leaseIds[0] ?? '';
  const start = () => store.startSession({ leaseId, startedAt: at, at });
  assert.equal(await told(start), ['sessions 1']);
  const release = () => store.releaseSession({ id: session.id, projectId, at });
  assert.equal(await told(release), ['sessions 1']);
  const end = { leaseId, status: 'COMPLETED', reason: 'over', proxyBytes: 0, at } as const;
  assert.equal(await told(() => store.completeSession(end)), ['sessions 1']);
});

test('a session is told when a part of its recording arrives, also after its end', async () => {
  await using app = await openWatched();
  const { told, db, projectId } = app;
  const id = newId();
  db.exec(`PRAGMA foreign_keys = OFF;
    INSERT INTO recordings (
      session_id, page_id, project_id, lease_id, url, start_ms, end_ms, created_at)
    VALUES ('${id}', 0, '${projectId}', 'lease', '', 0, 1, 0)`);
  const add = (sessionId: string, number: number) => () =>
    db.exec(`
      INSERT INTO recording_parts (
        session_id, page_id, number, blob_id, size, start_ms, end_ms)
      VALUES ('${sessionId}', 0, ${number}, '${newId()}', 1, 0, 1)`);
  assert.equal(await told(add(id, 1)), ['sessions 1']);
  assert.equal(await told(add(id, 2)), ['sessions 1']);
  assert.equal(await told(add(newId(), 1)), [], 'of nobody who is watched');
});

test('keys, extensions and downloads are told when they are added and removed', async () => {
  await using app = await openWatched();
  const { told, store, db, projectId, clock } = app;
  const at = clock.now();
  const key = { hash: Buffer.from('h'), projectId, publicId: 'public01', name: '', at };
  assert.equal(await told(() => store.addApiKey(key)), ['keys 1']);
  assert.equal(await told(() => store.useApiKey({ id: 'public01', at })), [], 'a use is no change');
  assert.equal(await told(() => store.revokeApiKey({ id: 'public01', at })), ['keys 1']);
  const blob = (id: string, kind: string) =>
    db.exec(`INSERT INTO blobs (id, project_id, kind, size, sha256, created_at)
      VALUES ('${id}', '${projectId}', '${kind}', 1, 'a', 0)`);
  blob('b1', 'EXTENSION');
  blob('b2', 'DOWNLOAD');
  const extension = { id: newId(), projectId, blobId: 'b1', fileName: 'a.zip', at };
  assert.equal(await told(() => store.createExtension(extension, 9)), ['extensions 1']);
  assert.equal(await told(() => store.deleteExtension({ ...extension, at })), ['extensions 1']);
  const id = newId();
  const download = () =>
    db.exec(`PRAGMA foreign_keys = OFF;
      INSERT INTO downloads (id, session_id, project_id, blob_id, filename, mime_type, size, sha256,
        created_at) VALUES ('${id}', 's', '${projectId}', 'b2', 'a', 'b', 1, 'a', 0)`);
  assert.equal(await told(download), ['downloads 1']);
  assert.equal(await told(() => store.deleteDownload({ id, projectId })), ['downloads 1']);
});

test('many changes are told without ids, and none after the last watch', async () => {
  await using app = await openWatched();
  const { told, store, projectId } = app;
  await app.addWebhook();
  await told(() => undefined);
  const emit = (count: number) => () => {
    for (let n = 0; n < count; n += 1) app.emit();
  };
  assert.equal(await told(emit(100)), ['deliveries 100']);
  assert.equal(await told(emit(101)), ['deliveries many']);
  let woken = 0;
  using _ = { [Symbol.dispose]: store.onWake(`changes:${projectId}`, () => (woken += 1)) };
  await store.unwatchChanges(projectId);
  assert.equal(await told(emit(1)), []);
  await store.watchChanges(newId());
  assert.equal([await told(emit(1)), woken], [[], 0], 'another project is watched');
});

test.run();
