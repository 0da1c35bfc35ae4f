/** The outcome of a lease: reported until core answers or the lease is lost. */
import { once } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import type { Outcome } from '../../../runner/leases/lease.ts';
import { testLease, testRunner } from '../../support/runner/lease.ts';

const test = suite('runner/leases/lease');
const OUTCOMES: readonly Outcome[] = [
  { kind: 'INVOCATION', outcome: undefined, sessionStartMs: 5, steps: [] },
  { kind: 'SESSION', end: 'COMPLETED', reason: 'released', proxyBytes: 7 },
  { kind: 'BUILD', outcome: undefined },
];
type Send = (request: object, options: CallOptions) => Promise<{ accepted: boolean }>;

function open(send: Send, signals: { lost?: AbortSignal; stopped?: AbortSignal } = {}) {
  const { lost, stopped = new AbortController().signal } = signals;
  const requests: object[] = [];
  const receive: Send = (request, options) => {
    requests.push(request);
    return send(request, options);
  };
  const runners = {
    completeInvocation: receive,
    completeSession: receive,
    completeBuild: receive,
  };
  const runner = testRunner({ clients: { runners }, stopped });
  return { lease: testLease('l', { lost }, runner), requests };
}

const away: Send = async () => {
  throw new Fault('CORE_UNAVAILABLE', 'away');
};
/** A core that accepts the call and never answers. */
const hang: Send = async (_request, { signal }) => {
  if (signal?.aborted !== true) await once(signal as AbortSignal, 'abort');
  throw new Fault('CANCELLED', 'cancelled');
};

test('each kind of work reports its outcome, and retries after core was unreachable', async () => {
  for (const outcome of OUTCOMES) {
    let calls = 0;
    const { lease, requests } = open(async (request, options) => {
      calls += 1;
      return calls === 1 ? away(request, options) : { accepted: true };
    });
    await lease.complete(outcome);
    const { kind: _kind, ...fields } = outcome;
    assert.equal(requests, [
      { leaseId: 'l', ...fields },
      { leaseId: 'l', ...fields },
    ]);
  }
});

test('an outcome that core may not have stored is reported again', async () => {
  for (const outcome of OUTCOMES) {
    let calls = 0;
    const { lease, requests } = open(async () => {
      calls += 1;
      if (calls === 1) throw new Fault('OUTCOME_UNKNOWN', 'the commit failed');
      return { accepted: true };
    });
    await lease.complete(outcome);
    assert.is(requests.length, 2);
  }
});

test('a runner that stops during the log and the report has 2 s for each', async () => {
  const stopped = new AbortController();
  let calls = 0;
  const { lease, requests } = open(
    async (request, options) => {
      calls += 1;
      stopped.abort();
      return calls === 1 ? away(request, options) : { accepted: true };
    },
    { stopped: stopped.signal },
  );
  {
    using deadline = lease.reportDeadline(); // of the log
    assert.not(deadline.signal.aborted);
  }
  await lease.complete({ kind: 'BUILD', outcome: undefined });
  assert.is(requests.length, 2);
});

test('the loss of the lease ends the report', async () => {
  for (const outcome of OUTCOMES) {
    const lost = new AbortController();
    const { lease, requests } = open(
      (request, options) => {
        setImmediate(() => lost.abort(new Error('lost')));
        return away(request, options);
      },
      { lost: lost.signal },
    );
    await lease.complete(outcome);
    assert.is(requests.length, 1);
  }
});

test('a lost lease is not reported', async () => {
  const { lease, requests } = open(away, { lost: AbortSignal.abort(new Error('lost')) });
  for (const outcome of OUTCOMES) await lease.complete(outcome);
  assert.equal(requests, []);
});

test('after the loss, an answer is awaited for a second only', async () => {
  const lost = new AbortController();
  const answered = open(
    async () => {
      lost.abort(new Error('lost'));
      await new Promise(setImmediate);
      return { accepted: true };
    },
    { lost: lost.signal },
  );
  await answered.lease.complete({ kind: 'BUILD', outcome: undefined });
  assert.is(answered.requests.length, 1);
  const later = new AbortController();
  const { lease, requests } = open(
    (request, options) => {
      later.abort(new Error('lost'));
      return hang(request, options);
    },
    { lost: later.signal },
  );
  await lease.complete({ kind: 'BUILD', outcome: undefined });
  assert.is(requests.length, 1);
});

test('a stopped runner reports for 2 s, and a refused outcome is not repeated', async () => {
  const { lease, requests } = open(away, { stopped: AbortSignal.abort() });
  const begun = performance.now();
  const awake = setInterval(() => {}, 1_000); // an AbortSignal.timeout keeps no process alive
  await lease.complete({ kind: 'BUILD', outcome: undefined });
  clearInterval(awake);
  const tookMs = performance.now() - begun;
  assert.ok(tookMs > 1_900 && tookMs < 10_000, `${tookMs} ms`);
  assert.ok(requests.length > 1);
  const refused = open(async () => {
    throw new Fault('INTERNAL', 'broken');
  });
  await refused.lease.complete({ kind: 'BUILD', outcome: undefined });
  assert.is(refused.requests.length, 1);
});

test.run();
