/** Waiting for an invocation's end: only its end wakes the call. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { invocationService } from '../../../core/functions/invocations.ts';
import type { Store } from '../../../core/store/types.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { openScope } from '../../../proto/rpc/local.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { type Booted, boot } from '../boot.ts';
import { type Bench, ENGINES, openBench, T0 } from '../store/engines.ts';

const test = suite('core/functions/waits');

async function ending(app: Booted, leaseId: string): Promise<void> {
  const end = { leaseId, outcome: undefined, sessionStartMs: 0, steps: [] };
  await app.clients.runners.completeInvocation(end, app.asRunner);
}

test('a wait ends when the invocation ends, and at once for an ended one', async () => {
  await using app = await boot();
  const { id } = await app.invoke(await app.publish({ name: 'f' }));
  const get = (wait: number) => app.clients.invocations.getInvocation({ id, wait }, app.asProject);
  assert.is((await get(0)).invocation?.status, 'PENDING');
  assert.is((await get(1)).invocation?.status, 'PENDING', 'the time is over');
  const waiting = app.clients.invocations.getInvocation(
    { id, wait: 60 },
    { ...app.asProject, timeoutMs: 90_000 },
  );
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  await ending(app, leaseId);
  const { invocation } = await waiting;
  assert.is(invocation?.status, 'COMPLETED');
  assert.equal((await get(60)).invocation, invocation);
});

test('a wait beyond 60 s is refused, naming the field', async () => {
  await using app = await boot();
  const { id } = await app.invoke(await app.publish({ name: 'f' }));
  const asked = app.clients.invocations.getInvocation({ id, wait: 61 }, app.asProject);
  const fault = await faultOf(asked);
  assert.equal([fault.reason, fault.facts['field']], ['INVALID_FIELD', 'wait']);
});

test('closing core ends waiting calls with the current state', async () => {
  await using app = await boot();
  const { id } = await app.invoke(await app.publish({ name: 'f' }));
  const options = { ...app.asProject, timeoutMs: 90_000 };
  const waiting = app.clients.invocations.getInvocation({ id, wait: 60 }, options);
  await app.clients.invocations.getInvocation({ id }, app.asProject);
  await app.core.close();
  assert.is((await waiting).invocation?.status, 'PENDING');
});

/** The service on a store that counts reads, their answers and subscriptions. */
function counted(bench: Bench, projectId: string) {
  const count = { looks: 0, answers: 0, listeners: 0 };
  const store: Store = {
    ...bench.store,
    async getInvocation(wanted) {
      count.looks += 1;
      const found = await bench.store.getInvocation(wanted);
      count.answers += 1;
      return found;
    },
    onWake(topic, listener) {
      count.listeners += 1;
      const stop = bench.store.onWake(topic, listener);
      return () => {
        count.listeners -= 1;
        stop();
      };
    },
  };
  const closing = new AbortController().signal;
  const log = openLog({ role: 'test', level: 'silent', people: false });
  const work = { store, log, now: () => T0, queueMax: 10, waitMs: 1, closing };
  const service = invocationService({
    ...work,
    validator: {} as never,
    secrets: {} as never,
    quotas: {} as never,
    readers: { note: () => undefined },
  });
  const wait = async (id: string, signal?: AbortSignal) => {
    const scope = openScope({ timeoutMs: 90_000, signal });
    try {
      return await service.getInvocation({ id, wait: 60 }, { projectId, call: scope.call });
    } finally {
      scope.close();
    }
  };
  return { count, wait };
}

function isAnswered({ looks, answers }: { looks: number; answers: number }): boolean {
  return looks === answers;
}

for (const engine of ENGINES) {
  test(`${engine.name}: 200 waiting calls are woken by their own invocation only`, async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p');
    const of = await bench.publish(projectId);
    const [awaited, other] = [await bench.accept(projectId, of), await bench.accept(projectId, of)];
    const { count, wait } = counted(bench, projectId);
    // An engine wakes all topics now and then, since a wake may be lost.
    let wakesOfAll = 0;
    bench.store.onWake(`invocation:${newId()}`, () => {
      wakesOfAll += 1;
    });
    const waits = Array.from({ length: 200 }, () => wait(awaited.id));
    await until(() => count.listeners === 200 && count.looks >= 200 && isAnswered(count));
    const [looks, before] = [count.looks, wakesOfAll];
    await bench.store.cancelInvocation({ id: other.id, projectId, at: T0 });
    // a turn of the database after it
    await bench.store.getInvocation({ id: awaited.id, projectId });
    assert.is(count.looks, looks + 200 * (wakesOfAll - before), "another's end wakes nobody");
    await bench.store.cancelInvocation({ id: awaited.id, projectId, at: T0 });
    const answers = await Promise.all(waits);
    assert.ok(answers.every(({ invocation }) => invocation?.status === 'FAILED'));
    assert.ok(count.looks >= looks + 200, 'each looked again');
    assert.ok(count.looks <= looks + 200 * (1 + wakesOfAll - before), 'once for each wake');
    assert.is(count.listeners, 0);
  });

  test(`${engine.name}: a disconnected call unsubscribes at once`, async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p');
    const { id } = await bench.accept(projectId, await bench.publish(projectId));
    const { count, wait } = counted(bench, projectId);
    const left = new AbortController();
    const waiting = faultOf(wait(id, left.signal));
    await until(() => count.listeners === 1);
    left.abort();
    assert.is((await waiting).reason, 'CANCELLED');
    assert.is(count.listeners, 0);
  });
}

test.run();
