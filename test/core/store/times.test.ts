/** Stored times after core's clock is set: no time remains in the future, except due times. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { idAt, newId } from '../../../core/common/ids.ts';
import { sealerOf } from '../../../core/common/sealer.ts';
import { readCoreConfig } from '../../../core/config.ts';
import { signedPaths } from '../../../core/files/url-signature.ts';
import { purgeOld } from '../../../core/maintenance/retention.ts';
import { retentionTable } from '../../../core/maintenance/retention-table.ts';
import { migrate } from '../../../core/store/sqlite/engine/migrate.ts';
import { BEGUN, DUE, HAPPENED, PLANNED } from '../../../core/store/sqlite/times.ts';
import type { Store } from '../../../core/store/types.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { bootDeliveries, HOUR, only } from '../../support/core/deliveries.ts';
import { purgeAt } from '../../support/core/retention.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { ENGINES, HOLDER, LEASE_MS, openBench } from './engines.ts';

const test = suite('core/store/times');
const log = openLog({ role: 'test', level: 'silent' });
const DAY = 24 * HOUR;
const T0 = Date.now();
const { signal } = new AbortController();
const [engine] = ENGINES;

/**
 * No time of core's clock: a runner's or a process's own reckoning, or no time at all. `signed_at`
 * is a header of a request that was sent: with another one its signature would not fit.
 */
const OTHERS = ['log_lines.at', 'attempts.signed_at'];

test('every column with a time is moved', () => {
  const db = new Sqlite(':memory:');
  migrate(db);
  const columns = db
    .prepare<[], string>(`
      SELECT tables.name || '.' || columns.name FROM sqlite_schema AS tables
      JOIN pragma_table_info(tables.name) AS columns
      WHERE tables.type = 'table' AND columns.type IN ('INTEGER', 'REAL') AND (
        columns.name IN ('at', 'due', 'until')
        OR columns.name GLOB '*_at' OR columns.name GLOB '*_until'
        OR columns.name GLOB '*_due' OR columns.name GLOB '*_before')`)
    .pluck()
    .all();
  const moved = [HAPPENED, DUE, BEGUN, PLANNED].flatMap((kind) =>
    Object.entries(kind).flatMap(([table, names]) => names.map((name) => `${table}.${name}`)),
  );
  assert.equal(columns.filter((name) => !OTHERS.includes(name)).sort(), moved.sort());
  db.close();
});

for (const stepMs of [-2 * HOUR, -30 * DAY, 2 * HOUR, 30 * DAY]) {
  const named = `${stepMs / HOUR} h`;

  test(`a step of ${named}: a delivery is due as it was, the streak stays`, async () => {
    await using app = bootDeliveries();
    await app.addWebhook();
    app.emit();
    await app.report([[only(await app.claim()), {}]]);
    const since = () => Number(app.rows('SELECT first_failure_at AS at FROM webhooks')[0]?.['at']);
    const failedMs = app.clock.now() - since();
    app.clock.advance(2_000);
    await app.store.beat({ at: app.clock.now(), gapMinMs: HOUR });
    const from = app.clock.now();
    await app.store.moveTimes({ from, to: from + stepMs });
    app.clock.set(from + stepMs);
    assert.is(app.clock.now() - since(), failedMs + 2_000);
    assert.is((await app.store.beat({ at: app.clock.now(), gapMinMs: 600_000 })).gapMs, 0);
    assert.equal(await app.claim(), []);
    app.clock.advance(2_999);
    assert.equal(await app.claim(), []);
    app.clock.advance(1);
    assert.is((await app.claim()).length, 1);
    assert.ok((await app.store.lastTime()) <= app.clock.now(), 'a start would go on from there');
  });

  test(`a step of ${named}: a lease and a session keep the time that is left`, async () => {
    await using bench = await openBench(must(engine, 'engine'));
    const { store } = bench;
    const projectId = await bench.project('p');
    const { id } = await store.createSession({
      id: newId(),
      projectId,
      region: 'us-west-2',
      contextId: null,
      extensionId: null,
      keepAlive: false,
      params: '{}',
      timeoutMs: HOUR,
      userMetadata: null,
      at: T0,
      waitUntil: T0 + 60_000,
    });
    const { leaseId } = must((await bench.lease('session', 1, T0))[0], 'a session');
    await store.startSession({ leaseId, startedAt: T0, at: T0 });
    const to = T0 + 1_000 + stepMs;
    await store.moveTimes({ from: T0 + 1_000, to });
    const leftMs = LEASE_MS - 1_000;
    assert.is((await store.sweepWork({ at: to + leftMs, max: 9 })).length, 0);
    const renewal = { ...HOLDER, leaseIds: [leaseId], leaseMs: 2 * HOUR, at: to };
    assert.equal(await store.renewLeases(renewal), [leaseId]);
    const row = must(await store.getSession({ id, projectId }), 'session');
    assert.is(row.expiresAt, to + HOUR - 1_000);
    assert.is((await store.projectUsage({ id: projectId, at: to })).browserMinutes, 1);
    const graceMs = 120_000;
    assert.is((await store.sweepWork({ at: row.expiresAt + graceMs, max: 9 })).length, 0);
    assert.is((await store.sweepWork({ at: row.expiresAt + graceMs + 1, max: 9 })).length, 1);
  });
}

test('rows created thirty days ahead are removed at their age, whatever their id', async () => {
  await using bench = await openBench(must(engine, 'engine'));
  const { store } = bench;
  const projectId = await bench.project('p');
  const ahead = T0 + 30 * DAY;
  const id = `${idAt(ahead)}7000-8000-000000000000`;
  await store.createSession({
    id,
    projectId,
    region: 'us-west-2',
    contextId: null,
    extensionId: null,
    keepAlive: false,
    params: '{}',
    timeoutMs: HOUR,
    userMetadata: null,
    at: ahead,
    waitUntil: ahead + 60_000,
  });
  await store.sweepWork({ at: ahead + 60_001, max: 9 });
  const at = T0 + DAY + 1;
  await store.moveTimes({ from: ahead + 120_000, to: T0 });
  const keptMs = { logs: DAY, invocations: DAY, builds: DAY, sessions: DAY };
  await purgeAt(at, ['logs', 'invocations', 'builds'], { store, keptMs });
  await purgeAt(T0, ['sessions'], { store, keptMs });
  assert.ok(await store.getSession({ id, projectId }));
  await purgeAt(at, ['sessions'], { store, keptMs });
  assert.is(await store.getSession({ id, projectId }), undefined);
});

for (const stepMs of [-2 * HOUR, 2 * HOUR]) {
  test(`a step of ${stepMs / HOUR} h is no part of how long an invocation runs`, async () => {
    await using bench = await openBench(must(engine, 'engine'));
    const { store } = bench;
    const projectId = await bench.project('p');
    const version = await bench.publish(projectId);
    const { id } = await bench.accept(projectId, version, { at: T0, waitUntil: T0 + HOUR });
    await bench.lease('invocation', 1, T0);
    const { id: waiting } = await bench.accept(projectId, version, { at: T0 });
    const read = async (of: string) =>
      must(await store.getInvocation({ id: of, projectId }), 'invocation');
    const before = await read(id);
    assert.is(before.startedAt, T0);
    await store.moveTimes({ from: T0 + 5_000, to: T0 + 5_000 + stepMs });
    const after = await read(id);
    assert.equal(
      [after.createdAt, after.startedAt, after.expiresAt],
      [before.createdAt, T0, before.expiresAt].map((at) => Number(at) + stepMs),
    );
    assert.is((await read(waiting)).createdAt, stepMs < 0 ? T0 + 5_000 + stepMs : T0);
  });
}

/** Times are real ones here, as ids are. One row at least for each cleaner. */
async function openFull() {
  const bench = await openBench(must(engine, 'engine'));
  const { store } = bench;
  const projectId = await bench.project('p');
  const events = await bench.listen(projectId, undefined, T0);
  await bench.accept(projectId, await bench.publish(projectId), { at: T0 });
  const { leaseId } = must((await bench.lease('invocation', 1, T0))[0], 'an invocation');
  const addBlob = async (kind: 'DOWNLOAD' | 'CONTEXT') => {
    const id = newId();
    await store.addBlob({ id, projectId, kind, size: 1, sha256: 'aa', createdAt: T0 });
    return id;
  };
  const blobId = await addBlob('DOWNLOAD');
  const lease = { leaseId, endedAfter: T0 };
  const download = { id: newId(), blobId, filename: 'a', mimeType: 'b', at: T0 };
  await store.addDownload({ ...download, ...lease });
  const chunk = { leaseId, number: 0, entries: Buffer.from('a'), count: 1, size: 9, at: T0 };
  await store.appendSessionLog({ ...chunk, ...lease, maxBytes: 99 });
  const stored = { projectId, kind: 'RECORDING', size: 1, sha256: 'aa', createdAt: T0 } as const;
  const part = { number: 0, startMs: 0, endMs: 0, blob: { id: newId(), ...stored } };
  const page = { leaseId, pageId: 0, startMs: 0, endMs: 0, url: '', complete: true };
  const quota = { kinds: ['RECORDING'], maxBytes: 99 } as const;
  await store.addRecording({ ...page, parts: [part], quota, endedAfter: 0, at: T0 });
  const lines = [{ level: 'info', message: 'a', at: T0 }];
  await store.appendLogs({ leaseId, first: 0, lines, maxBytes: 99, linesMax: 9, marker: '' });
  const outcome = { kind: 'success', results: null } as const;
  await store.completeInvocation({ leaseId, outcome, sessionStartedAt: T0, at: T0 });
  await events();
  const unnamed = await addBlob('CONTEXT');
  const counts = () => {
    const db = new Sqlite(join(bench.dir, 'tabern.db'), { readonly: true });
    const tables = ['downloads', 'recordings', 'recording_parts', 'session_logs', 'sessions'];
    tables.push('session_log_heads', 'log_lines', 'invocations', 'builds', 'events', 'attempts');
    tables.push('deliveries', 'blobs');
    const count = (name: string) => db.prepare(`SELECT COUNT(*) FROM ${name}`).pluck().get();
    const found = Object.fromEntries(tables.map((name) => [name, Number(count(name))]));
    db.close();
    return found;
  };
  return { bench, store, leaseId, unnamed, counts };
}

async function cleanAt(store: Store, at: number): Promise<void> {
  const table = retentionTable(readCoreConfig({}), { store, files: { remove: async () => {} } });
  await purgeOld(table, { log, now: () => at, isHeld: () => false }, signal);
  await store.removeUnusedBlobs({ before: at - HOUR, max: 9 });
}

test('a clock that was wrong by -40 days and is corrected makes no row old', async () => {
  const { bench, store, counts } = await openFull();
  await using _ = bench;
  const all = counts();
  assert.ok(
    Object.values(all).every((count) => count > 0),
    JSON.stringify(all),
  );
  let at = T0 + 2_000;
  for (const stepMs of [-40 * DAY, 40 * DAY]) {
    await store.moveTimes({ from: at, to: at + stepMs });
    at += stepMs + 20 * 60_000;
    if (stepMs < 0) await cleanAt(store, at);
    assert.equal(counts(), all, `a step of ${stepMs / DAY} days`);
  }
  await cleanAt(store, at);
  assert.equal(counts(), all);
  await cleanAt(store, at + 100 * DAY);
  const left = Object.entries(counts()).filter(([, count]) => count > 0);
  assert.equal(
    left,
    [
      ['builds', 1],
      ['blobs', 2],
    ],
    'the newest version keeps its build',
  );
});

for (const stepMs of [2 * HOUR, 40 * DAY]) {
  test(`a step of ${stepMs / HOUR} h: blobs and ended leases keep their time`, async () => {
    const { bench, store, leaseId, unnamed } = await openFull();
    await using _ = bench;
    const from = T0 + 60_000;
    const to = from + stepMs;
    await store.moveTimes({ from, to });
    const unused = (at: number) => store.removeUnusedBlobs({ before: at - HOUR, max: 9 });
    assert.equal(await unused(to), []);
    const late = (at: number) =>
      store.findLateSession({ leaseId, endedAfter: at - 600_000, isRecording: true });
    assert.ok(await late(to), 'late recordings');
    assert.ok(await late(to + 539_000));
    assert.is(await late(to + 541_000), undefined);
    assert.equal(await unused(to + HOUR), [unnamed]);
  });
}

test('operations with new times are refused when stored times were not moved', async () => {
  await using bench = await openBench(must(engine, 'engine'));
  const { store } = bench;
  const beat = (at: number) => store.beat({ at, gapMinMs: HOUR });
  const [before, moved, after] = await Promise.allSettled([
    beat(T0),
    store.moveTimes({} as { from: number; to: number }),
    beat(T0 + DAY),
  ]);
  assert.equal([before.status, moved.status], ['fulfilled', 'rejected']);
  const refused = faultOf(Promise.reject((after as PromiseRejectedResult).reason));
  assert.is((await refused).reason, 'CORE_UNAVAILABLE');
  // the step is undone in a later turn than that of the answer
  assert.is(await until(() => store.lastTime().catch(() => undefined)), T0);
  await beat(T0 + 1);
  await Promise.all([store.moveTimes({ from: T0 + 1, to: T0 + DAY }), beat(T0 + DAY + 1)]);
  assert.is(await store.lastTime(), T0 + DAY + 1);
});

test('a clock step is accepted by a full queue', async () => {
  await using bench = await openBench(must(engine, 'engine'));
  const { store } = bench;
  const asked = Array.from({ length: 5_000 }, () => store.lastTime().catch(() => 'refused'));
  await store.moveTimes({ from: T0, to: T0 + DAY });
  assert.ok((await Promise.all(asked)).includes('refused'));
});

test('a URL signed by a clock that was ahead expires with its key', async () => {
  let at = T0 + 30 * DAY;
  const isRevoked = async () => false;
  const sealer = sealerOf(Buffer.alloc(32, 1));
  const paths = signedPaths('tests', { sealer, now: () => at, isRevoked });
  const grant = { method: 'GET', path: '/v1/a', projectId: newId(), keyId: undefined } as const;
  const url = paths.sign({ ...grant, lifeMs: HOUR });
  await paths.read('GET', url);
  at = T0;
  assert.is((await faultOf(paths.read('GET', url))).reason, 'URL_EXPIRED');
});

test.run();
