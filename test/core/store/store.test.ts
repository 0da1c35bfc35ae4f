/** The store's operations: run on each of ENGINES. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import type { InvocationOutcome } from '../../../core/store/types/leases.ts';
import { faultOf } from '../../support/fault.ts';
import { ENGINES, HOLDER, LEASE_MS, openBench, T0 } from './engines.ts';

const DONE: InvocationOutcome = { kind: 'success', results: '{"n":1}' };
const THROWN: InvocationOutcome = {
  kind: 'failure',
  cause: { code: 'WORKLOAD_ERROR', message: 'no' },
};

for (const engine of ENGINES) {
  const test = suite(`store/${engine.name}`);

  test('PENDING, RUNNING, COMPLETED: the session follows, with one event each', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const fn = await bench.publish(projectId);
    const events = await bench.listen(projectId);
    const { id, sessionId } = await bench.accept(projectId, fn);
    const status = async () => [
      (await store.getInvocation({ id, projectId }))?.status,
      (await store.getSession({ id: sessionId, projectId }))?.status,
    ];
    assert.equal(await status(), ['PENDING', 'PENDING']);
    assert.equal(await events(), ['functions.invocations.pending']);
    const [work] = await bench.lease('invocation');
    assert.is(work?.id, id);
    assert.equal(await status(), ['RUNNING', 'RUNNING']);
    assert.equal(await events(), ['functions.invocations.running']);
    const end = {
      leaseId: work?.leaseId ?? '',
      outcome: DONE,
      sessionStartedAt: T0 + 5,
      at: T0 + 9,
    };
    assert.is(await store.completeInvocation(end), true);
    assert.equal(await status(), ['COMPLETED', 'COMPLETED']);
    assert.equal(await events(), ['functions.invocations.completed']);
    assert.is((await store.getSession({ id: sessionId, projectId }))?.startedAt, T0 + 5);
  });

  test('an endpoint of the longest text is stored, once', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p');
    const text = Array.from({ length: 2_000 }, (_, n) => String.fromCodePoint(0x4e00 + n * 10));
    const endpoint = `https://example.com/${text.join('')}`;
    const rest = { eventTypes: ['sessions.ended'], sealed: Buffer.from('s'), at: T0 };
    const webhook = { projectId, endpoint, endpointKey: new URL(endpoint).href, ...rest };
    const [first, second] = [newId(), newId()];
    const made = await bench.store.createWebhook({ ...webhook, id: first }, 100);
    assert.is(made.outcome, 'written');
    const again = await bench.store.createWebhook({ ...webhook, id: second }, 100);
    assert.is(again.outcome, 'endpoint-taken');
  });

  test('an ended state is final: repeated and late outcomes change nothing', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const events = await bench.listen(projectId, [
      'functions.invocations.completed',
      'functions.invocations.failed',
    ]);
    const { id } = await bench.accept(projectId, await bench.publish(projectId));
    const [work] = await bench.lease('invocation');
    const leaseId = work?.leaseId ?? '';
    const end = { leaseId, sessionStartedAt: null, at: T0 + 1 };
    assert.is(await store.completeInvocation({ ...end, outcome: DONE }), true);
    assert.is(await store.completeInvocation({ ...end, outcome: THROWN, at: T0 + 2 }), true);
    assert.is(await store.completeInvocation({ ...end, leaseId: newId(), outcome: THROWN }), false);
    assert.is((await store.sweepWork({ at: T0 + 10 * LEASE_MS, max: 10 })).length, 0);
    const row = await store.getInvocation({ id, projectId });
    assert.is(row?.status, 'COMPLETED');
    assert.is(row?.results, '{"n":1}');
    assert.is(row?.endedAt, T0 + 1);
    assert.equal(await events(), ['functions.invocations.completed']);
  });

  test('the end of a session follows from the end of its invocation', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p');
    const fn = await bench.publish(projectId);
    const table = { WORKLOAD_ERROR: 'COMPLETED', TIMED_OUT: 'TIMED_OUT', INTERNAL_ERROR: 'ERROR' };
    for (const [code, status] of Object.entries(table)) {
      const { sessionId } = await bench.accept(projectId, fn);
      const [work] = await bench.lease('invocation');
      const cause = { code: code as keyof typeof table, message: 'm' };
      await bench.store.completeInvocation({
        leaseId: work?.leaseId ?? '',
        outcome: { kind: 'failure', cause },
        sessionStartedAt: null,
        at: T0,
      });
      assert.is((await bench.store.getSession({ id: sessionId, projectId }))?.status, status);
    }
  });

  test('a held lease is renewed late, until it is lost; work that waits is offered', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const fn = await bench.publish(projectId);
    const lostAfterMs = 100_000;
    const { id } = await bench.accept(projectId, fn);
    const [held] = await bench.lease('invocation');
    const renewed = { ...HOLDER, leaseIds: [held?.leaseId ?? ''], leaseMs: LEASE_MS };
    assert.equal(await store.renewLeases({ ...renewed, at: T0 }), renewed.leaseIds);
    const other = await bench.accept(projectId, fn);
    await bench.offer('invocation'); // never acknowledged
    const late = T0 + LEASE_MS + 1;
    assert.is((await store.sweepWork({ at: late, lostAfterMs, max: 1 })).length, 0);
    const again = await bench.lease('invocation', 5, late);
    assert.equal(
      again.map((one) => one.id),
      [other.id],
      'only what has not begun is leased again',
    );
    assert.is(
      (await store.sweepWork({ at: late + lostAfterMs - 1, lostAfterMs, max: 9 })).length,
      0,
    );
    assert.equal(
      await store.renewLeases({ ...renewed, at: late + lostAfterMs - 1 }),
      renewed.leaseIds,
      'late, and not given up',
    );
    const from = late + lostAfterMs - 1;
    await store.recoverWork({ at: from + 50_000, leaseMs: LEASE_MS });
    const last = from + 50_000 + LEASE_MS + lostAfterMs;
    assert.is(
      (await store.sweepWork({ at: last, lostAfterMs, max: 9 })).length,
      0,
      'from the start of core',
    );
    assert.is((await store.getInvocation({ id, projectId }))?.status, 'RUNNING');
    assert.is((await store.sweepWork({ at: last + 1, lostAfterMs, max: 9 })).length, 2);
    assert.is((await store.getInvocation({ id, projectId }))?.status, 'FAILED');
    assert.equal(await store.renewLeases({ ...renewed, at: last + 1 }), [], 'presented too late');
  });

  test('a lost lease fails its work with an event, and its late outcome is dropped', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const events = await bench.listen(projectId, [
      'functions.invocations.completed',
      'functions.invocations.failed',
    ]);
    const { id, sessionId } = await bench.accept(projectId, await bench.publish(projectId));
    const [work] = await bench.lease('invocation');
    const leaseIds = [work?.leaseId ?? ''];
    assert.is(
      (await store.sweepWork({ at: T0 + LEASE_MS, max: 10 })).length,
      0,
      'not before its end',
    );
    const renewed = { ...HOLDER, leaseIds, leaseMs: LEASE_MS, at: T0 + 10_000 };
    assert.equal(await store.renewLeases(renewed), leaseIds);
    assert.is((await store.sweepWork({ at: T0 + LEASE_MS + 5_000, max: 10 })).length, 0, 'renewed');
    assert.is((await store.sweepWork({ at: T0 + 2 * LEASE_MS, max: 10 })).length, 1);
    const row = await store.getInvocation({ id, projectId });
    assert.is(row?.status, 'FAILED');
    assert.equal(JSON.parse(row?.cause ?? ''), {
      code: 'INTERNAL_ERROR',
      message: 'the runner was lost',
    });
    assert.is((await store.getSession({ id: sessionId, projectId }))?.status, 'ERROR');
    const late = { leaseId: leaseIds[0] ?? '', outcome: DONE, sessionStartedAt: null, at: T0 };
    assert.is(await store.completeInvocation(late), false);
    assert.equal(await store.renewLeases(renewed), []);
    assert.equal(await events(), ['functions.invocations.failed']);
  });

  test('a new instance of a runner ends the work of the old one', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const fn = await bench.publish(projectId);
    const { id } = await bench.accept(projectId, fn);
    const waiting = await bench.accept(projectId, fn);
    await bench.lease('invocation');
    const second = { ...HOLDER, instanceId: 'second', at: T0 + 1 };
    assert.is((await store.registerRunner(second)).length, 1);
    assert.is((await store.getInvocation({ id, projectId }))?.status, 'FAILED');
    assert.is((await faultOf(bench.lease('invocation'))).reason, 'LEASE_LOST');
    const renewal = { ...HOLDER, leaseIds: [], leaseMs: LEASE_MS, at: T0 };
    assert.is((await faultOf(store.renewLeases(renewal))).reason, 'LEASE_LOST');
    const untouched = await store.getInvocation({ id: waiting.id, projectId });
    assert.is(untouched?.status, 'PENDING', 'what nobody held still waits');
    assert.is((await store.registerRunner(second)).length, 0, 'registering again ends nothing');
  });

  test('a function published again keeps its id and gets a new version', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const first = await bench.publish(projectId, 'title');
    const second = await bench.publish(projectId, 'title');
    const other = await bench.publish(projectId, 'other');
    assert.is(second.functionId, first.functionId);
    assert.is.not(other.functionId, first.functionId);
    const wanted = { functionId: first.functionId, projectId };
    assert.is((await store.newestVersion(wanted))?.id, second.versionId);
    const page = await store.listVersions({ ...wanted, offset: 0, limit: 9 });
    assert.equal(
      page.rows.map(({ id }) => id),
      [second.versionId, first.versionId],
    );
    assert.is((await store.listFunctions({ projectId, offset: 0, limit: 1 })).total, 2);
  });

  test('a failed build publishes nothing', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const events = await bench.listen(projectId, [
      'functions.builds.completed',
      'functions.builds.failed',
    ]);
    const blob = { id: newId(), projectId, kind: 'BUILD_ARCHIVE', size: 1, sha256: 'aa' } as const;
    await store.addBlob({ ...blob, createdAt: T0 });
    const ids = { id: newId(), projectId, archiveBlobId: blob.id, entrypoint: 'index.ts' };
    const times = { at: T0, waitUntil: T0 + 1, expiresAt: T0 + 1, queueMax: 1 };
    await store.createBuild({ ...ids, ...times });
    const [work] = await bench.lease('build');
    const outcome = { kind: 'failure', cause: { code: 'BUILD_ERROR', message: 'no' } } as const;
    await store.completeBuild({ leaseId: work?.leaseId ?? '', outcome, at: T0 });
    const found = await store.getBuild({ id: ids.id, projectId });
    assert.is(found?.build.status, 'FAILED');
    assert.equal(found?.functions, []);
    assert.is((await store.listFunctions({ projectId, offset: 0, limit: 9 })).total, 0);
    assert.equal(await events(), ['functions.builds.failed']);
  });

  test("another project's objects look like missing ones", async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const [mine, theirs] = [await bench.project('mine'), await bench.project('theirs')];
    const fn = await bench.publish(mine);
    const { id, sessionId } = await bench.accept(mine, fn);
    const projectId = theirs;
    assert.is(await store.getInvocation({ id, projectId }), undefined);
    assert.is(await store.getSession({ id: sessionId, projectId }), undefined);
    assert.is(await store.getFunction({ id: fn.functionId, projectId }), undefined);
    assert.is(await store.getVersion({ id: fn.versionId, projectId }), undefined);
    assert.is(await store.newestVersion({ functionId: fn.functionId, projectId }), undefined);
    assert.equal(await store.listSessions({ projectId, status: undefined, max: 9 }), []);
  });

  test('a restart keeps rows, leases and counters', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p', 2);
    const fn = await bench.publish(projectId);
    const { id } = await bench.accept(projectId, fn);
    for (let i = 0; i < 2; i += 1) await bench.accept(projectId, fn);
    const [work] = await bench.lease('invocation');
    await bench.store.close();
    const store = await engine.open(bench.dir);
    await store.recoverWork({ at: T0 + 60_000, leaseMs: LEASE_MS });
    assert.is(
      (await store.sweepWork({ at: T0 + 60_000 + LEASE_MS, max: 9 })).length,
      0,
      'a full term again',
    );
    const leaseIds = [newId(), newId()];
    const wanted = { ...HOLDER, kind: 'invocation', leaseIds, leaseMs: LEASE_MS, at: T0 } as const;
    assert.is((await store.leaseWork(wanted)).length, 1, 'one of two places was taken');
    const end = { leaseId: work?.leaseId ?? '', outcome: DONE, sessionStartedAt: null, at: T0 };
    assert.is(await store.completeInvocation(end), true);
    assert.is((await store.getInvocation({ id, projectId }))?.status, 'COMPLETED');
    await store.close();
  });

  test.run();
}
