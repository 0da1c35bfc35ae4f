/** Queues, limits and logs in every engine of the store. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import type { InvocationOutcome } from '../../../core/store/types/leases.ts';
import { faultOf } from '../../support/fault.ts';
import { ENGINES, HOLDER, openBench, T0 } from './engines.ts';

const DONE: InvocationOutcome = { kind: 'success', results: '{"n":1}' };

for (const engine of ENGINES) {
  const test = suite(`store queue/${engine.name}`);

  test('a backlog of one project does not delay another', async () => {
    await using bench = await openBench(engine);
    const [a, b] = [await bench.project('a'), await bench.project('b')];
    const [ofA, ofB] = [await bench.publish(a), await bench.publish(b)];
    for (let i = 0; i < 10; i += 1) await bench.accept(a, ofA);
    const before = await bench.lease('invocation', 4);
    assert.is(before.length, 4);
    for (let i = 0; i < 3; i += 1) await bench.accept(b, ofB);
    const order = (await bench.lease('invocation', 6)).map(({ projectId }) => projectId);
    assert.is(order.filter((id) => id === b).length, 3, 'the newcomer gets every other turn');
    assert.is(new Set(order.slice(0, 2)).size, 2);
  });

  test('unused turns of a project are not saved', async () => {
    await using bench = await openBench(engine);
    const [a, b] = [await bench.project('a'), await bench.project('b')];
    const [ofA, ofB] = [await bench.publish(a), await bench.publish(b)];
    await bench.accept(b, ofB);
    await bench.lease('invocation'); // one of b runs, and nothing of it waits
    for (let i = 0; i < 12; i += 1) await bench.accept(a, ofA);
    await bench.lease('invocation', 8);
    for (let i = 0; i < 8; i += 1) await bench.accept(b, ofB);
    const order = (await bench.lease('invocation', 8)).map(({ projectId }) => projectId);
    assert.is(order.filter((id) => id === a).length, 4, 'b, back again, gets its half');
  });

  test('a project runs no more than its cap, and an end frees a place', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p', 2);
    const fn = await bench.publish(projectId);
    for (let i = 0; i < 3; i += 1) await bench.accept(projectId, fn);
    const [first, ...rest] = await bench.lease('invocation', 3);
    assert.is(rest.length, 1);
    const end = { leaseId: first?.leaseId ?? '', outcome: DONE, sessionStartedAt: null, at: T0 };
    const woken = new Promise<void>((resolve) => {
      bench.store.onWake('work:invocation', () => resolve());
    });
    await bench.store.completeInvocation(end);
    await woken;
    assert.is((await bench.lease('invocation', 3)).length, 1);
  });

  test('leases at one moment each find work, as long as some waits', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p', 1_000);
    const fn = await bench.publish(projectId);
    const both = async () => {
      await bench.accept(projectId, fn);
      return (await bench.offer('invocation')).length;
    };
    const found = await Promise.all(Array.from({ length: 60 }, both));
    assert.is(found.filter((count) => count !== 1).length, 0);
  });

  test('the queue has a limit, and refused work leaves no row', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p');
    const fn = await bench.publish(projectId);
    const events = await bench.listen(projectId);
    await bench.accept(projectId, fn, { queueMax: 1 });
    const fault = await faultOf(bench.accept(projectId, fn, { queueMax: 1 }));
    assert.is(fault.reason, 'QUEUE_FULL');
    assert.equal(fault.facts, { limit: 1, current: 1 });
    assert.match(fault.message, /invocations wait.*\(limit 1, currently 1\).*starts or is ended/);
    const filter = { versionId: fn.versionId, projectId, status: undefined, offset: 0, limit: 9 };
    assert.is((await bench.store.listInvocations(filter)).total, 1);
    const sessions = await bench.store.listSessions({ projectId, status: undefined, max: 9 });
    assert.is(sessions.length, 1);
    assert.equal(await events(), ['functions.invocations.pending']);
  });

  test('waiting work ends after its wait, running work after its time and grace', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p', 1);
    const fn = await bench.publish(projectId);
    const running = await bench.accept(projectId, fn);
    const waiting = await bench.accept(projectId, fn, { waitUntil: T0 + 50 });
    const [work] = await bench.lease('invocation');
    assert.is((await store.sweepWork({ at: T0 + 50, max: 9 })).length, 0);
    assert.is((await store.sweepWork({ at: T0 + 51, max: 9 })).length, 1);
    const cause = async (id: string) =>
      JSON.parse((await store.getInvocation({ id, projectId }))?.cause ?? 'null');
    assert.is((await cause(waiting.id)).code, 'TIMED_OUT');
    assert.is(await cause(running.id), null);
    const over = T0 + 900_000 + 120_001;
    await store.renewLeases({ ...HOLDER, leaseIds: [work?.leaseId ?? ''], leaseMs: 1, at: over });
    assert.is((await store.sweepWork({ at: over, max: 9 })).length, 1);
    assert.is((await cause(running.id)).code, 'TIMED_OUT');
  });

  test('work is PENDING until its runner renews the lease, then RUNNING', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p', 1);
    const { id, sessionId } = await bench.accept(projectId, await bench.publish(projectId));
    const events = await bench.listen(projectId, ['functions.invocations.running']);
    const status = async () => [
      (await store.getInvocation({ id, projectId }))?.status,
      (await store.getSession({ id: sessionId, projectId }))?.status,
    ];
    const [work] = await bench.offer('invocation');
    assert.equal(await status(), ['PENDING', 'PENDING']);
    assert.equal(await events(), []);
    const leaseIds = [work?.leaseId ?? ''];
    const taken = { ...HOLDER, leaseIds, leaseMs: 15_000, at: T0 + 5 };
    assert.equal(await store.renewLeases(taken), leaseIds);
    assert.equal(await status(), ['RUNNING', 'RUNNING']);
    const row = await store.getInvocation({ id, projectId });
    assert.is(row?.startedAt, T0 + 5, 'its time counts from there');
    assert.is(row?.expiresAt, T0 + 5 + 900_000);
    await store.renewLeases({ ...taken, at: T0 + 5_000 });
    assert.is((await store.getInvocation({ id, projectId }))?.startedAt, T0 + 5);
    assert.equal(await events(), ['functions.invocations.running']);
  });

  test('unconfirmed work is offered again after a disconnect, expiry or takeover', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p', 1);
    const { id } = await bench.accept(projectId, await bench.publish(projectId));
    const events = await bench.listen(projectId);
    const status = async () => (await store.getInvocation({ id, projectId }))?.status;
    const [first] = await bench.offer('invocation');
    await store.putBackWork({ leaseIds: [first?.leaseId ?? ''] });
    assert.is(await store.findLease(first?.leaseId ?? ''), undefined);
    const [second] = await bench.offer('invocation');
    assert.is(second?.id, id);
    assert.is((await store.sweepWork({ at: T0 + 15_001, max: 9 })).length, 0, 'nothing ended');
    const renewal = { ...HOLDER, leaseIds: [second?.leaseId ?? ''], leaseMs: 15_000, at: T0 };
    assert.equal(await store.renewLeases(renewal), [], 'too late to run it');
    assert.is((await bench.offer('invocation'))[0]?.id, id);
    const next = { ...HOLDER, instanceId: 'second' };
    assert.is((await store.registerRunner({ ...next, at: T0 })).length, 0);
    const wanted = { ...next, kind: 'invocation', leaseMs: 15_000, at: T0 } as const;
    const [third] = await store.leaseWork({ ...wanted, leaseIds: [newId()] });
    assert.is(third?.id, id);
    assert.is(await status(), 'PENDING');
    assert.equal(await events(), []);
    const end = { leaseId: third?.leaseId ?? '', outcome: DONE, sessionStartedAt: null, at: T0 };
    assert.is(await store.completeInvocation(end), true);
    assert.is(await status(), 'COMPLETED');
    const told = ['functions.invocations.completed', 'functions.invocations.running'];
    assert.equal(await events(), told, 'an outcome says that it ran');
  });

  test('running work is never put back', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p', 1);
    const { id } = await bench.accept(projectId, await bench.publish(projectId));
    const [work] = await bench.lease('invocation');
    await bench.store.putBackWork({ leaseIds: [work?.leaseId ?? ''] });
    assert.is((await bench.store.getInvocation({ id, projectId }))?.status, 'RUNNING');
    assert.is((await bench.store.findLease(work?.leaseId ?? ''))?.id, id);
  });

  test('work that no runner confirms ends when its wait ends', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p', 1);
    const fn = await bench.publish(projectId);
    const { id } = await bench.accept(projectId, fn, { waitUntil: T0 + 50 });
    await bench.offer('invocation');
    assert.is((await store.sweepWork({ at: T0 + 51, max: 9 })).length, 1);
    const cause = JSON.parse((await store.getInvocation({ id, projectId }))?.cause ?? 'null');
    assert.equal(cause, { code: 'TIMED_OUT', message: 'no runner was free in time' });
  });

  test('appending is idempotent by line number, refuses gaps, and is truncated once', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const { id } = await bench.accept(projectId, await bench.publish(projectId));
    const [work] = await bench.lease('invocation');
    const line = (message: string) => ({ message, at: T0, level: 'log' });
    const limits = { leaseId: work?.leaseId ?? '', maxBytes: 6, linesMax: 9, marker: 'cut' };
    const append = (first: number, ...texts: string[]) =>
      store.appendLogs({ ...limits, first, lines: texts.map(line) });
    const kept = async () => (await store.listLogs(id)).map(({ message }) => message);
    assert.is(await append(0, 'a', 'b'), true);
    assert.is(await append(0, 'a', 'b', 'c'), true);
    assert.equal(await kept(), ['a', 'b', 'c']);
    assert.is((await faultOf(append(5, 'f'))).reason, 'INVALID_FIELD');
    await append(3, 'ddddd', 'e');
    await append(5, 'f');
    assert.equal(await kept(), ['a', 'b', 'c', 'cut']);
    assert.is(await store.appendLogs({ ...limits, leaseId: newId(), first: 0, lines: [] }), false);
  });

  test('empty lines count for the limit', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p');
    const { id } = await bench.accept(projectId, await bench.publish(projectId));
    const [work] = await bench.lease('invocation');
    const limits = { leaseId: work?.leaseId ?? '', maxBytes: 100, linesMax: 3, marker: 'cut' };
    const lines = Array.from({ length: 9 }, () => ({ message: '', at: T0, level: 'log' }));
    await bench.store.appendLogs({ ...limits, first: 0, lines });
    const kept = (await bench.store.listLogs(id)).map(({ message }) => message);
    assert.equal(kept, ['', '', '', 'cut']);
  });

  test('a failing operation does not undo others of the same group', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p');
    const fn = await bench.publish(projectId);
    const outcomes = await Promise.allSettled([
      bench.accept(projectId, fn),
      bench.accept(projectId, { ...fn, versionId: newId() }), // no such version
      bench.accept(projectId, fn, { queueMax: 0 }),
      bench.accept(projectId, fn),
    ]);
    assert.equal(
      outcomes.map(({ status }) => status),
      ['fulfilled', 'rejected', 'rejected', 'fulfilled'],
    );
    const filter = { versionId: fn.versionId, projectId, status: undefined, offset: 0, limit: 9 };
    assert.is((await bench.store.listInvocations(filter)).total, 2);
    assert.is((await bench.lease('invocation', 9)).length, 2, 'counters agree with the rows');
  });

  test.run();
}
