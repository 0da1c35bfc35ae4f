/** Sessions of users in every engine of the store: runs on each of ENGINES. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import type { SessionStatus } from '../../../core/store/types/sessions.ts';
import { must } from '../../../proto/common/must.ts';
import { faultOf } from '../../support/fault.ts';
import { type Bench, ENGINES, HOLDER, LEASE_MS, openBench, T0 } from './engines.ts';

type More = { metadata?: object; at?: number; timeoutMs?: number };

function create({ store }: Bench, projectId: string, { metadata, at = T0, timeoutMs }: More = {}) {
  return store.createSession({
    id: newId(),
    projectId,
    region: 'us-west-2',
    contextId: null,
    extensionId: null,
    keepAlive: false,
    params: '{}',
    timeoutMs,
    at,
    waitUntil: at + 60_000,
    userMetadata: metadata === undefined ? null : JSON.stringify(metadata),
  });
}

/** Created, leased and started. */
async function run(bench: Bench, projectId: string, more: More = {}) {
  const { id } = await create(bench, projectId, more);
  const at = more.at ?? T0;
  const { leaseId } = must((await bench.lease('session', 1, at))[0], 'a session to lease');
  assert.ok(await bench.store.startSession({ leaseId, startedAt: at, at }));
  return { id, leaseId };
}

const END = { status: 'COMPLETED', reason: 'over', proxyBytes: 0, at: T0 } as const;

for (const engine of ENGINES) {
  const test = suite(`store-sessions/${engine.name}`);

  test('a project is limited by its own sessions, not by those of others', async () => {
    await using bench = await openBench(engine);
    const [one, two] = [await bench.project('one', 2), await bench.project('two', 2)];
    const fn = await bench.publish(one);
    await bench.accept(one, fn);
    await bench.accept(one, fn);
    await bench.lease('invocation', 2);
    await run(bench, one);
    await create(bench, one);
    const fault = await faultOf(create(bench, one));
    assert.equal([fault.reason, fault.facts], ['CONCURRENCY_LIMIT', { limit: 2, current: 2 }]);
    await run(bench, two);
    const list = { projectId: one, status: undefined, max: 10 };
    assert.is((await bench.store.listSessions(list)).length, 4, 'the refused one left nothing');
  });

  test('a list does not read the members that only runners need', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p');
    const { id } = await create(bench, projectId, { metadata: { a: 'b' } });
    const metadata = { keys: ['a'], value: 'b' };
    for (const more of [{}, { status: 'PENDING' as const }, { metadata }]) {
      const [row] = await bench.store.listSessions({
        projectId,
        status: undefined,
        max: 9,
        ...more,
      });
      assert.equal([row?.id, Object.hasOwn(row ?? {}, 'params')], [id, false]);
    }
  });

  test('a limit holds for many sessions created in one commit', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p', 5);
    const many = Array.from({ length: 20 }, () => create(bench, projectId));
    const settled = await Promise.allSettled(many);
    assert.is(settled.filter(({ status }) => status === 'fulfilled').length, 5);
    assert.is((await bench.offer('session', 64)).length, 5);
  });

  test('a session frees its slot once: at its release or at its end', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p', 1);
    for (let round = 0; round < 3; round++) {
      const { id, leaseId } = await run(bench, projectId);
      assert.is((await faultOf(create(bench, projectId))).reason, 'CONCURRENCY_LIMIT');
      await store.releaseSession({ id, projectId, at: T0 });
      const waiting = await create(bench, projectId);
      assert.equal(await store.releasedLeases(HOLDER), [leaseId]);
      await store.completeSession({ leaseId, ...END });
      assert.is((await faultOf(create(bench, projectId))).reason, 'CONCURRENCY_LIMIT');
      await store.releaseSession({ id: waiting.id, projectId, at: T0 });
    }
    assert.equal(await store.releasedLeases(HOLDER), []);
    assert.equal(await bench.offer('session', 9), [], 'nothing waits any more');
  });

  test('a session of another project is not found', async () => {
    await using bench = await openBench(engine);
    const [one, two] = [await bench.project('one'), await bench.project('two')];
    const { id } = await run(bench, one);
    assert.is(await bench.store.releaseSession({ id, projectId: two, at: T0 }), undefined);
    assert.equal(await bench.store.releasedLeases(HOLDER), []);
    assert.is((await bench.store.locateSession(id))?.projectId, one);
    assert.is(await bench.store.locateSession(newId()), undefined);
  });

  test('a running session is located at its runner', async () => {
    await using bench = await openBench(engine);
    const address = 'tls:10.0.0.6:7448';
    await bench.store.registerRunner({ ...HOLDER, address, at: T0 });
    const { id } = await run(bench, await bench.project('p'));
    const { projectId: _, ...found } = (await bench.store.locateSession(id)) ?? {};
    const { runnerId } = HOLDER;
    assert.equal(found, { status: 'RUNNING', address, runnerId, isReleased: false });
  });

  test('sessions of several projects are served in turn', async () => {
    await using bench = await openBench(engine);
    const [one, two] = [await bench.project('one', 9), await bench.project('two', 9)];
    for (let n = 0; n < 5; n++) await create(bench, one);
    await create(bench, two);
    const served = (await bench.lease('session', 2)).map(({ projectId }) => projectId);
    assert.equal(served.sort(), [one, two].sort());
  });

  test('an offered session that did not start waits again for the rest of its minute', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const { id } = await create(bench, projectId);
    const status = async () => (await store.getSession({ id, projectId }))?.status;
    const [offered] = await bench.lease('session');
    await store.putBackWork({ leaseIds: [offered?.leaseId ?? ''] });
    const [again] = await bench.lease('session');
    assert.is(again?.id, id);
    assert.is((await store.sweepWork({ at: T0 + LEASE_MS + 1, max: 9 })).length, 0);
    assert.is(await status(), 'PENDING');
    assert.is((await bench.lease('session', 1, T0 + 59_000))[0]?.id, id);
    assert.is((await store.sweepWork({ at: T0 + 60_001, max: 9 })).length, 1);
    const row = must(await store.getSession({ id, projectId }), 'session');
    assert.equal(
      [row.status, row.endReason, row.startedAt],
      ['ERROR', 'the browser was not ready in time', null],
    );
  });

  test('a released session ends even if its runner does not end it', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const { id, leaseId } = await run(bench, projectId);
    await store.releaseSession({ id, projectId, at: T0 });
    const renewed = { ...HOLDER, leaseIds: [leaseId], leaseMs: 10 * 60_000, at: T0 };
    await store.renewLeases(renewed);
    assert.is((await store.sweepWork({ at: T0 + 120_000, max: 9 })).length, 0);
    assert.is((await store.sweepWork({ at: T0 + 120_001, max: 9 })).length, 1);
    const row = await store.getSession({ id, projectId });
    assert.equal([row?.status, row?.endReason], ['ERROR', 'the runner was lost']);
    assert.is(await store.completeSession({ leaseId, ...END }), false);
  });

  test('what core itself ends is returned, with the status and the reason of the row', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const fn = await bench.publish(projectId);
    const endOf = async (id: string) => {
      const row = await store.getSession({ id, projectId });
      return { id, status: row?.status, reason: row?.endReason };
    };
    const { sessionId } = await bench.accept(projectId, fn);
    await bench.lease('invocation');
    const { id } = await run(bench, projectId);
    const lost = await store.registerRunner({ ...HOLDER, instanceId: 'second', at: T0 });
    const reason = 'the runner was lost';
    for (const [kind, one] of [
      ['invocation', sessionId],
      ['session', id],
    ] as const) {
      const end = { id: one, status: 'ERROR', reason };
      assert.equal(lost.find((work) => work.kind === kind)?.session, end);
      assert.equal(await endOf(one), end);
    }

    const [waiting, free] = [await create(bench, projectId), await create(bench, projectId)];
    const released = await store.releaseSession({ id: free.id, projectId, at: T0 });
    assert.ok(released?.outcome === 'released' && released.hasEnded);
    const again = await store.releaseSession({ id: free.id, projectId, at: T0 });
    assert.ok(again?.outcome === 'released' && !again.hasEnded, 'once');
    const [, ended] = [await endOf(free.id), await store.sweepWork({ at: T0 + 60_001, max: 9 })];
    const noRunner = { id: waiting.id, status: 'ERROR', reason: 'no runner was free in time' };
    assert.equal(ended, [{ kind: 'session', session: noRunner }]);
    assert.is((await endOf(free.id)).reason, 'the session was released');
  });

  test('the session of an invocation ends as its browser did, else as the invocation', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const fn = await bench.publish(projectId);
    const failed = (code: 'WORKLOAD_ERROR' | 'TIMED_OUT' | 'INTERNAL_ERROR', message: string) =>
      ({ kind: 'failure', cause: { code, message } }) as const;
    const done = { kind: 'success', results: '1' } as const;
    const long = 'x'.repeat(5_000);
    for (const [outcome, browserLoss, status, reason] of [
      [done, undefined, 'COMPLETED', 'the invocation has ended'],
      [failed('WORKLOAD_ERROR', 'mine'), undefined, 'COMPLETED', 'the invocation has ended'],
      [failed('TIMED_OUT', 'late'), undefined, 'TIMED_OUT', 'late'],
      [failed('INTERNAL_ERROR', long), undefined, 'ERROR', long.slice(0, 1_024)],
      [done, 'the browser was lost', 'ERROR', 'the browser was lost'],
      [failed('WORKLOAD_ERROR', 'mine'), 'gone', 'ERROR', 'gone'],
    ] as const) {
      const { sessionId } = await bench.accept(projectId, fn);
      const { leaseId } = must((await bench.lease('invocation'))[0], 'an invocation');
      const end = { leaseId, outcome, browserLoss, sessionStartedAt: null, at: T0 };
      assert.ok(await store.completeInvocation(end));
      const row = await store.getSession({ id: sessionId, projectId });
      assert.equal([row?.status, row?.endReason], [status, reason]);
    }
    const waiting = await bench.accept(projectId, fn);
    const cancelled = await store.cancelInvocation({ id: waiting.id, projectId, at: T0 });
    const reason = 'the invocation was cancelled';
    const session = { id: waiting.sessionId, status: 'COMPLETED', reason };
    assert.equal(cancelled?.session, session);
    const again = await store.cancelInvocation({ id: waiting.id, projectId, at: T0 });
    assert.is(again?.session, undefined, 'once');
  });

  test('a restart of the store keeps leases and counts', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p', 2);
    const { leaseId } = await run(bench, projectId);
    const waiting = await create(bench, projectId);
    await bench.store.recoverWork({ at: T0, leaseMs: LEASE_MS });
    assert.is((await faultOf(create(bench, projectId))).reason, 'CONCURRENCY_LIMIT');
    assert.is((await bench.lease('session'))[0]?.id, waiting.id);
    assert.ok(await bench.store.completeSession({ leaseId, ...END }));
  });

  test('a clock set forward while core was stopped ends no running session', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const HOUR_MS = 3_600_000;
    const projectId = await bench.project('p');
    const { id, leaseId } = await run(bench, projectId, { timeoutMs: HOUR_MS / 2 });
    await store.beat({ at: T0, gapMinMs: HOUR_MS });
    const at = T0 + HOUR_MS;
    await store.recoverWork({ at, leaseMs: LEASE_MS });
    assert.is((await store.sweepWork({ at: at + 1_000, max: 9 })).length, 0);
    assert.equal(
      await store.renewLeases({ ...HOLDER, leaseIds: [leaseId], leaseMs: HOUR_MS, at }),
      [leaseId],
    );
    const endAt = at + HOUR_MS / 2 + 120_000; // its time, and the grace that its runner has
    assert.is((await store.sweepWork({ at: endAt, max: 9 })).length, 0);
    assert.is((await store.sweepWork({ at: endAt + 1, max: 9 })).length, 1);
    assert.is((await store.getSession({ id, projectId }))?.status, 'TIMED_OUT');
  });

  test('sessions are found by metadata keys and text, newest first', async () => {
    await using bench = await openBench(engine);
    const [one, two] = [await bench.project('one', 99), await bench.project('two', 99)];
    const make = async (metadata: object, projectId = one) =>
      (await create(bench, projectId, { metadata })).id;
    const first = await make({ a: 'x', n: { m: 'deep', list: ['y'] }, number: 1, yes: true });
    const second = await make({ a: 'x', 'b"c': 'd', "n']['m": 'deep' });
    await make({ a: 'x' }, two);
    await make({ a: 'X' });
    const find = async (keys: string[], value: string, status?: SessionStatus) => {
      const query = { projectId: one, status, metadata: { keys, value }, max: 99 };
      return (await bench.store.listSessions(query)).map(({ id }) => id);
    };
    assert.equal(await find(['a'], 'x'), [second, first]);
    assert.equal(await find(['a'], 'x', 'PENDING'), [second, first]);
    assert.equal(await find(['a'], 'x', 'RUNNING'), []);
    await bench.store.releaseSession({ id: first, projectId: one, at: T0 });
    assert.equal(await find(['a'], 'x', 'PENDING'), [second]);
    assert.equal(await find(['a'], 'x', 'COMPLETED'), [first]);
    assert.equal(await find(['n', 'm'], 'deep'), [first]);
    assert.equal(await find(["n']['m"], 'deep'), [second]);
    assert.equal(await find(['b"c'], 'd'), [second]);
    for (const none of [['a', 'x'], ['n'], ['number'], ['yes'], ['n', 'list'], ['%']]) {
      assert.equal(await find(none, 'x'), []);
    }
    assert.equal(await find(['number'], '1'), [], 'texts only');
    const invoked = await bench.accept(one, await bench.publish(one));
    assert.ok(await bench.store.getSession({ id: invoked.sessionId, projectId: one }));
  });

  test('usage counts at least a minute for each started session', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    await create(bench, projectId);
    const usage = async (at: number) =>
      (await store.projectUsage({ id: projectId, at })).browserMinutes;
    assert.is(await usage(T0 + 600_000), 0);
    const [work] = await bench.lease('session');
    const leaseId = work?.leaseId ?? '';
    await store.startSession({ leaseId, startedAt: T0, at: T0 });
    assert.is(await usage(T0 + 1), 1);
    assert.is(await usage(T0 + 60_001), 2);
    await store.completeSession({ leaseId, ...END, proxyBytes: 7, at: T0 + 61_000 });
    assert.equal(await store.projectUsage({ id: projectId, at: T0 + 9_000_000 }), {
      browserMinutes: 2,
      proxyBytes: 7,
    });
  });

  test.run();
}
