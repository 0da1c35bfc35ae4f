/** A core without work does not use its database: no wake storm. */
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { until } from '../../support/poll.ts';
import { boot, HOLDER } from '../boot.ts';

const idle = suite('core/api/idle');

/** The operations that this process sends to its database thread from now on. */
function watchStore(): Disposable & { asked: string[] } {
  const asked: string[] = [];
  const { postMessage } = Worker.prototype;
  Worker.prototype.postMessage = function (this: Worker, message: unknown, ...rest: never[]) {
    const { kind, op } = message as { kind?: string; op?: string };
    if (kind === 'op') asked.push(String(op));
    return postMessage.call(this, message, ...rest);
  };
  return {
    asked,
    [Symbol.dispose]() {
      Worker.prototype.postMessage = postMessage;
    },
  };
}

const countOf = (asked: readonly string[]) => {
  const counts: Record<string, number> = {};
  for (const op of asked) counts[op] = (counts[op] ?? 0) + 1;
  return counts;
};

/** Key pairs that the first start generates. */
const KEY_PAIRS = 1;

idle(
  'no-wake-storm: with a waiting runner and sender, only the sweep and the schedules use the store',
  async () => {
    using store = watchStore();
    await using app = await boot({ TABERN_SWEEP_MS: '500', TABERN_KEY_PAIRS: String(KEY_PAIRS) });
    const sender = { senderId: 'one', instanceId: newId(), max: 64, waitMs: 5_000 };
    await until(() => countOf(store.asked)['addKeyPair'] === KEY_PAIRS);
    const before = store.asked.length;
    const leaving = new AbortController();
    const options = { signal: leaving.signal };
    const waiting = [
      app.clients.deliveries.claimDeliveries(sender, { ...app.asGateway, ...options }),
      app.clients.runners.leaseWork(
        { ...HOLDER, kind: 'INVOCATION', max: 1, waitMs: 5_000 },
        { ...app.asRunner, ...options },
      ),
    ];
    const counts = () => countOf(store.asked.slice(before));
    await until(() => (counts()['sweepWork'] ?? 0) >= 4);
    const { sweepWork, dueSchedules, ...rest } = counts();
    assert.ok((dueSchedules ?? 0) <= (sweepWork ?? 0), 'the schedules are read once a second');
    leaving.abort();
    await Promise.allSettled(waiting);
    assert.equal(rest, { claimDeliveries: 1, leaseWork: 1 });
  },
);

idle('no-wake-storm: a delivery that is due later is claimed when it is due', async () => {
  await using app = await boot({ TABERN_SWEEP_MS: '500' });
  const wanted = { endpoint: 'https://example.com/', eventTypes: ['functions.builds.running'] };
  await app.clients.webhooks.createWebhook(wanted, app.asProject);
  await app.publish({ name: 'f' });
  const sender = { senderId: 'one', instanceId: newId(), max: 64, waitMs: 0 };
  const { claims } = await app.clients.deliveries.claimDeliveries(sender, app.asGateway);
  const reports = claims.map(({ deliveryId, claimSeq, attemptId }) => ({
    deliveryId,
    claimSeq,
    attemptId,
    outcome: 'HTTP' as const,
    status: 500,
    latencyMs: 1,
    error: 'no',
    response: Buffer.alloc(0),
    retryAfterSeconds: undefined,
    abortMessage: false,
  }));
  assert.is(reports.length, 1);
  const { senderId, instanceId } = sender;
  await app.clients.deliveries.reportAttempts(
    { senderId, instanceId, reports, max: 0 },
    app.asGateway,
  );
  using store = watchStore();
  const leaving = new AbortController();
  const waiting = app.clients.deliveries.claimDeliveries(
    { ...sender, waitMs: 5_000 },
    { ...app.asGateway, signal: leaving.signal },
  );
  await until(() => (countOf(store.asked)['sweepWork'] ?? 0) >= 4);
  leaving.abort();
  await Promise.allSettled([waiting]);
  assert.is(countOf(store.asked)['claimDeliveries'], 1);
});

idle.run();
