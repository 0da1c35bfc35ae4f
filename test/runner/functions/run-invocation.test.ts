/** One invocation, one outcome: with stubs of hosts, Chrome and core. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { CompleteInvocationRequest } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import type { InvokeOutcome } from '../../../runner/functions/hosts.ts';
import { until } from '../../support/poll.ts';
import { run, type Scene, untilAborted } from './invocation-lab.ts';

const test = suite('runner/functions/run-invocation');
const failed = { type: 'failure', code: 'WORKLOAD_ERROR', name: 'E', message: 'm', stack: 's' };

function codeOf(outcome: CompleteInvocationRequest['outcome']): string | undefined {
  return outcome?.$case === 'failure' ? outcome.value.code : undefined;
}

test('a result is reported once, after the log; then Chrome ends', async () => {
  const { told, acts } = await run({
    async invoke({ onLines }) {
      onLines([{ level: 'log', message: 'a', timestamp: 1 }]);
      return { type: 'result', json: '{"a":1}' };
    },
  });
  assert.equal(acts, ['k in', 'k out', '1 lines', 'told', 'chrome killed', 'chrome gone']);
  const [{ steps = [], ...end } = {}, ...more] = told;
  assert.equal(
    [end, more],
    [
      {
        leaseId: 'lease',
        outcome: { $case: 'resultsJson', value: '{"a":1}' },
        sessionStartMs: 7,
        browserLoss: undefined,
      },
      [],
    ],
  );
  const names = steps.map(({ name }) => name);
  assert.equal(names.toSorted(), ['browser', 'bundle', 'close', 'handler']);
  assert.equal(names.slice(2), ['handler', 'close']);
  for (const { startMs, endMs, failed: hasFailed } of steps) {
    assert.ok(startMs >= 0 && endMs >= startMs);
    assert.is(hasFailed, false);
  }
});

test('a step that fails is reported as failed, also after the time limit', async () => {
  const take = () => Promise.reject(new Error('no browser'));
  const stepOf = async (scene: Scene, wanted: string) =>
    (await run(scene)).told[0]?.steps.find(({ name }) => name === wanted);
  assert.is((await stepOf({ take }, 'browser'))?.failed, true);
  const late = { invoke: untilAborted, timeoutMs: 20 };
  const closed = await stepOf(late, 'close');
  const handled = await stepOf(late, 'handler');
  assert.is(closed?.failed, false);
  assert.ok((handled?.endMs ?? 0) >= (handled?.startMs ?? 0));
});

test('a handler starts after its lease is acknowledged, and never for a lost lease', async () => {
  for (const isOurs of [true, false]) {
    const acknowledged = Promise.withResolvers<void>();
    const lost = new AbortController();
    let hasBegun = false;
    const running = run({
      acknowledged: acknowledged.promise,
      lost: lost.signal,
      async invoke() {
        hasBegun = true;
        return { type: 'result', json: '1' };
      },
    });
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    assert.not.ok(hasBegun);
    if (!isOurs) lost.abort();
    acknowledged.resolve();
    const { told, acts } = await running;
    assert.is(hasBegun, isOurs);
    assert.is(told.length, isOurs ? 1 : 0);
    assert.ok(acts.includes('chrome gone'));
  }
});

test('a run without a value has no outcome; the report is retried while core is away', async () => {
  const { told, outcome, acts } = await run({
    invoke: async () => ({ type: 'result', json: undefined }),
    away: 1,
  });
  assert.is(told.length, 1);
  assert.is(outcome, undefined);
  assert.equal(acts, ['k in', 'k out', 'chrome killed', 'chrome gone', 'told']);
});

test("the report is retried while core's disk is full; a refusal is final", async () => {
  assert.is((await run({ away: 1, why: 'STORAGE_FULL' })).told.length, 1);
  assert.is((await run({ away: 1, why: 'INTERNAL' })).told.length, 0);
});

test('a failed handler is a workload error unless its browser was lost', async () => {
  const own = await run({ invoke: async () => failed as InvokeOutcome });
  assert.equal(own.outcome, {
    $case: 'failure',
    value: { code: 'WORKLOAD_ERROR', message: 'm', name: 'E', stack: 's' },
  });
  const lose: Scene['invoke'] = async (_, crash) => {
    crash();
    await new Promise((resolve) => setImmediate(resolve));
    return failed as InvokeOutcome;
  };
  const lost = await run({ invoke: lose });
  assert.is(codeOf(lost.outcome), 'INTERNAL_ERROR');
  assert.is(lost.told[0]?.browserLoss, 'the browser was lost');
  assert.is(own.told[0]?.browserLoss, undefined);
  // a browser above its memory limit is the invocation's own failure
  const { outcome } = await run({ invoke: lose, overMemory: 'it used too much' });
  const message = 'the browser was lost: it used too much: m';
  const value = { code: 'WORKLOAD_ERROR', message, name: 'E', stack: 's' } as const;
  assert.equal(outcome, { $case: 'failure', value });
});

test('a failed Chrome start is INTERNAL_ERROR without details of the machine', async () => {
  const { outcome, told } = await run({
    take: () => Promise.reject(new Error('no such file /srv/x')),
  });
  assert.is(codeOf(outcome), 'INTERNAL_ERROR');
  assert.not.match(JSON.stringify(outcome), /srv/);
  assert.is(told[0]?.sessionStartMs, 0);
});

test('an exceeded time limit is TIMED_OUT, with the session closed', async () => {
  const { outcome, acts } = await run({ invoke: untilAborted, timeoutMs: 20 });
  assert.is(codeOf(outcome), 'TIMED_OUT');
  assert.equal(acts.toSorted(), ['chrome gone', 'chrome killed', 'k in', 'k out', 'told']);
});

test('Chrome ends with the invocation even while the handler continues', async () => {
  for (const end of ['timeoutMs', 'released', 'lost'] as const) {
    let acts: string[] = [];
    await run({
      ...(end === 'timeoutMs' ? { timeoutMs: 20 } : { [end]: AbortSignal.timeout(20) }),
      async invoke({ signal }, _, done) {
        acts = done;
        await untilAborted({ signal });
        await until(() => done.includes('chrome killed'));
        done.push('handler over');
        return { type: 'aborted' };
      },
    });
    assert.ok(acts.indexOf('chrome gone') < acts.indexOf('handler over'), `${end}: ${acts}`);
  }
});

test('a directory that cannot be removed fails the work after the report', async () => {
  const told: string[] = [];
  const running = run({ isStuck: true, away: 1, onTold: () => told.push('told') });
  const problem = await running.then(
    () => undefined,
    (error: Error) => error.message,
  );
  assert.is(problem, 'the disk says no');
  assert.equal(told, ['told']);
});

test('an invocation of a lost lease is not reported, and Chrome is closed', async () => {
  const { told, acts } = await run({ invoke: untilAborted, lost: AbortSignal.timeout(20) });
  assert.equal(told, []);
  assert.equal(acts.toSorted(), ['chrome gone', 'chrome killed', 'k in', 'k out']);
});

test('a released lease aborts the run, which is reported as cancelled', async () => {
  const { outcome, acts } = await run({ invoke: untilAborted, released: AbortSignal.timeout(20) });
  const value = {
    code: 'WORKLOAD_ERROR',
    message: 'the invocation was cancelled',
    name: '',
    stack: '',
  };
  assert.equal(outcome, { $case: 'failure', value });
  assert.ok(acts.includes('chrome gone'));
});

test('an invocation released before its start is reported as cancelled', async () => {
  const released = AbortSignal.timeout(20);
  const take = (): Promise<never> =>
    new Promise((_, reject) => {
      released.addEventListener('abort', () => reject(new Error('no Chrome')));
    });
  const { outcome } = await run({ take, released });
  assert.is(codeOf(outcome), 'WORKLOAD_ERROR');
});

test('a runner that ends during a run reports that reason', async () => {
  const { outcome } = await run({ invoke: untilAborted, stopped: AbortSignal.timeout(20) });
  assert.is(codeOf(outcome), 'INTERNAL_ERROR');
});

test.run();
