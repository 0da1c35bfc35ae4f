/** Cancelling: PENDING ends at once, RUNNING by its runner, an ended invocation stays. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import type { Invocation } from '../../../proto/gen/tabern/v1/invocations.pb.ts';
import { faultOf } from '../../support/fault.ts';
import { type Booted, boot, HOLDER } from '../boot.ts';
import { ENGINES, openBench, T0 } from '../store/engines.ts';

const test = suite('core/functions/cancel');
const CANCELLED = {
  code: 'WORKLOAD_ERROR',
  message: 'the invocation was cancelled',
  name: 'Cancelled',
};

async function cancel(app: Booted, id: string): Promise<Invocation> {
  const { invocation } = await app.clients.invocations.cancelInvocation({ id }, app.asProject);
  return must(invocation, 'invocation');
}

async function read(app: Booted, id: string): Promise<Invocation> {
  const { invocation } = await app.clients.invocations.getInvocation({ id }, app.asProject);
  return must(invocation, 'invocation');
}

async function sessionStatus(app: Booted, id: string) {
  const { session } = await app.clients.sessions.getSession({ id }, app.asProject);
  return session?.status;
}

/** How its session has ended. */
async function sessionEnd(app: Booted, id: string) {
  const { session } = await app.clients.sessions.getSession({ id }, app.asProject);
  return [session?.status, session?.endReason];
}

async function releases(app: Booted, waitMs = 0): Promise<string[]> {
  const request = { ...HOLDER, knownLeaseIds: [], waitMs };
  return (await app.clients.runners.awaitReleases(request, app.asRunner)).leaseIds;
}

/** A running invocation and its lease. */
async function running(app: Booted) {
  const made = await app.invoke(await app.publish({ name: 'f' }));
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  return { ...made, leaseId };
}

type Outcome = Parameters<Booted['clients']['runners']['completeInvocation']>[0]['outcome'];

function complete(app: Booted, leaseId: string, outcome: Outcome) {
  const end = { leaseId, outcome, sessionStartMs: 0, steps: [] };
  return app.clients.runners.completeInvocation(end, app.asRunner);
}

function failure(code: string, message: string): Outcome {
  return { $case: 'failure', value: { code, message, name: '', stack: '' } };
}

test('a cancelled PENDING invocation is FAILED at once, and no runner receives it', async () => {
  await using app = await boot();
  const { id, sessionId } = await app.invoke(await app.publish({ name: 'f' }));
  const cancelled = await cancel(app, id.toUpperCase());
  assert.equal([cancelled.status, cancelled.cause], ['FAILED', { ...CANCELLED, stack: undefined }]);
  assert.ok(cancelled.endedAt);
  assert.is(await sessionStatus(app, sessionId), 'COMPLETED');
  assert.equal(await app.lease('INVOCATION'), []);
});

test('a cancelled invocation whose runner is lost has a session that is an ERROR', async () => {
  await using app = await boot();
  const { id, sessionId } = await running(app);
  await cancel(app, id);
  await app.clients.runners.registerRunner({ ...HOLDER, instanceId: 'second' }, app.asRunner);
  assert.is((await read(app, id)).cause?.message, CANCELLED.message);
  assert.equal(await sessionEnd(app, sessionId), ['ERROR', 'the runner was lost']);
});

test('a handler that throws the words of a cancellation was not cancelled', async () => {
  await using app = await boot();
  const { sessionId, leaseId } = await running(app);
  await complete(app, leaseId, failure('WORKLOAD_ERROR', CANCELLED.message));
  assert.equal(await sessionEnd(app, sessionId), ['COMPLETED', 'the invocation has ended']);
});

test('a cancelled offered invocation does not run', async () => {
  await using app = await boot();
  const { id } = await app.invoke(await app.publish({ name: 'f' }));
  const wanted = { ...HOLDER, kind: 'INVOCATION', max: 1, waitMs: 0 } as const;
  const { work } = await app.clients.runners.leaseWork(wanted, app.asRunner);
  const leaseIds = work.map(({ leaseId }) => leaseId);
  assert.is(leaseIds.length, 1);
  assert.is((await cancel(app, id)).status, 'FAILED');
  const taken = await app.clients.runners.reportRunner({ ...HOLDER, leaseIds }, app.asRunner);
  assert.equal(taken.leaseIds, []);
});

test('a runner receives the cancellation, and the invocation is FAILED when it ends', async () => {
  await using app = await boot();
  const { id, sessionId, leaseId } = await running(app);
  const hearing = releases(app, 25_000);
  assert.is((await cancel(app, id)).status, 'RUNNING');
  assert.equal(await hearing, [leaseId]);
  app.clock.advance(1_000);
  assert.is((await cancel(app, id)).status, 'RUNNING', 'twice is once');
  await complete(app, leaseId, failure('INTERNAL_ERROR', 'the browser was lost'));
  const ended = await read(app, id);
  assert.equal([ended.status, ended.cause], ['FAILED', { ...CANCELLED, stack: undefined }]);
  assert.is(await sessionStatus(app, sessionId), 'COMPLETED');
  assert.equal(await releases(app), []);
});

test('a handler that returned before the cancellation keeps its result', async () => {
  await using app = await boot();
  const { id, leaseId } = await running(app);
  await cancel(app, id);
  await complete(app, leaseId, { $case: 'resultsJson', value: '7' });
  const { status, results, cause } = await read(app, id);
  assert.equal([status, results, cause], ['COMPLETED', 7, undefined]);
});

test('cancelling an ended invocation changes nothing', async () => {
  await using app = await boot();
  const { id, leaseId } = await running(app);
  await complete(app, leaseId, failure('WORKLOAD_ERROR', 'no'));
  const ended = await read(app, id);
  app.clock.advance(1_000);
  assert.equal(await cancel(app, id), ended);
});

test('a failure without a cancellation keeps its cause', async () => {
  await using app = await boot();
  const { id, leaseId } = await running(app);
  await complete(app, leaseId, failure('INTERNAL_ERROR', 'the browser was lost'));
  assert.is((await read(app, id)).cause?.message, 'the browser was lost');
});

test('an unknown id is a 404, a malformed one a 400', async () => {
  await using app = await boot();
  assert.is((await faultOf(cancel(app, newId()))).message, 'Invocation not found.');
  assert.is((await faultOf(cancel(app, 'x'))).facts['field'], 'id');
});

for (const engine of ENGINES) {
  test(`${engine.name}: a cancelled invocation survives the loss of its runner`, async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const of = await bench.publish(projectId);
    const heard = await bench.listen(projectId, ['functions.invocations.failed']);
    const [forgotten, lost, other] = [
      await bench.accept(projectId, of),
      await bench.accept(projectId, of),
      await bench.accept(projectId, of),
    ];
    const leaseIds = (await bench.lease('invocation', 3)).map(({ leaseId }) => leaseId);
    for (const { id } of [forgotten, lost]) await store.cancelInvocation({ id, projectId, at: T0 });
    const stranger = await bench.project('stranger');
    const own = { id: other.id, projectId: stranger, at: T0 };
    assert.is(await store.cancelInvocation(own), undefined, 'another project finds none');

    const renew = (at: number) =>
      store.renewLeases({
        runnerId: 'runner',
        instanceId: 'first',
        leaseMs: 15_000,
        at,
        leaseIds: leaseIds.filter((_, index) => index !== 1),
      });
    for (let at = T0; at <= T0 + 110_000; at += 10_000) {
      await renew(at);
      await store.sweepWork({ at, max: 10 });
    }
    const causeOf = async (id: string) =>
      JSON.parse((await store.getInvocation({ id, projectId }))?.cause ?? 'null');
    assert.equal(await causeOf(lost.id), CANCELLED, 'its lease was over');
    assert.is(await causeOf(forgotten.id), null, 'it still has time');
    await renew(T0 + 121_000);
    assert.is((await store.sweepWork({ at: T0 + 121_000, max: 10 })).length, 1);
    assert.equal(await causeOf(forgotten.id), CANCELLED);
    assert.is(await causeOf(other.id), null);
    assert.is((await heard()).length, 2, 'one event each');
  });
}

test.run();
