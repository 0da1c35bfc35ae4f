/** What is stored when core's clock is set: no time stays in the future but what is due there. */
import Sqlite from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { idAt, newId } from '../../../core/common/ids.ts';
import { sealerOf } from '../../../core/common/sealer.ts';
import { signedPaths } from '../../../core/files/signed-urls.ts';
import { sessionCleaner } from '../../../core/maintenance/session-retention.ts';
import { workCleaner } from '../../../core/maintenance/work-retention.ts';
import { migrate } from '../../../core/store/sqlite/engine/migrate.ts';
import { BEGUN, DUE, HAPPENED } from '../../../core/store/sqlite/times.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { bootDeliveries, HOUR, only } from '../../support/core/deliveries.ts';
import { faultOf } from '../../support/fault.ts';
import { ENGINES, HOLDER, LEASE_MS, openBench } from './engines.ts';

const test = suite('core/store/times');
const log = openLog({ role: 'test', level: 'silent' });
const DAY = 24 * HOUR;
const T0 = Date.now();
const [engine] = ENGINES;

/** No time of core's clock: a runner's or a process's own reckoning, or no time at all. */
const OTHERS = ['log_lines.at'];

test('every column that holds a time is moved', () => {
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
  const moved = [HAPPENED, DUE, BEGUN].flatMap((kind) =>
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
    assert.is(await store.sweepWork({ at: to + leftMs, max: 9 }), 0);
    const renewal = { ...HOLDER, leaseIds: [leaseId], leaseMs: 2 * HOUR, at: to };
    assert.equal(await store.renewLeases(renewal), [leaseId]);
    const row = must(await store.getSession({ id, projectId }), 'session');
    assert.is(row.expiresAt, to + HOUR - 1_000);
    assert.is((await store.projectUsage({ id: projectId, at: to })).browserMinutes, 1);
    const graceMs = 120_000;
    assert.is(await store.sweepWork({ at: row.expiresAt + graceMs, max: 9 }), 0);
    assert.is(await store.sweepWork({ at: row.expiresAt + graceMs + 1, max: 9 }), 1);
  });
}

test('what was made thirty days ahead goes in its time, whatever its id says', async () => {
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
  const now = () => T0 + DAY + 1;
  await store.moveTimes({ from: ahead + 120_000, to: T0 });
  const { signal } = new AbortController();
  await workCleaner({
    store,
    log,
    now,
    logsKeptMs: DAY,
    invocationsKeptMs: DAY,
    buildsKeptMs: DAY,
  })(signal);
  await sessionCleaner({ store, log, now: () => T0, keptMs: DAY })(signal);
  assert.ok(await store.getSession({ id, projectId }));
  await sessionCleaner({ store, log, now, keptMs: DAY })(signal);
  assert.is(await store.getSession({ id, projectId }), undefined);
});

test('a signed URL of a clock that was ahead does not outlive its key', async () => {
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
