/**
 * Core's metrics: correct counts, the names of proto/spec/webhooks.md 12, and no name of a project.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openMetrics, textOf } from '../../../proto/common/metrics.ts';
import { must } from '../../../proto/common/must.ts';
import { type Booted, boot } from '../boot.ts';

const test = suite('core/maintenance/metrics');

const ANY = {
  browserSettings: undefined,
  proxies: undefined,
  userMetadata: undefined,
  proxySettings: undefined,
  labels: [],
};
const CLAIM = { senderId: 's', max: 8, waitMs: 0 };

async function openApp() {
  const metrics = await openMetrics('core');
  const app = await boot({}, { metrics });
  const read = async () => textOf([await metrics.samples()]);
  return { ...app, read, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() };
}

async function deliver(app: Booted, status: number): Promise<void> {
  const instanceId = crypto.randomUUID();
  const { claims } = await app.clients.deliveries.claimDeliveries(
    { ...CLAIM, instanceId },
    app.asGateway,
  );
  const reports = claims.map(({ deliveryId, claimSeq, attemptId }) => ({
    deliveryId,
    claimSeq,
    attemptId,
    status,
    latencyMs: 40,
    error: '',
    outcome: status < 300 ? ('OK' as const) : ('HTTP' as const),
    response: Buffer.alloc(0),
    abortMessage: false,
  }));
  const report = { senderId: CLAIM.senderId, instanceId, reports, max: 0 };
  await app.clients.deliveries.reportAttempts(report, app.asGateway);
}

test('work, ends of sessions and deliveries are counted', async () => {
  await using app = await openApp();
  const { clients, asProject, asRunner } = app;
  const hook = { endpoint: 'https://example.com/h', eventTypes: ['functions.invocations.failed'] };
  await clients.webhooks.createWebhook(hook, asProject);
  const functionId = await app.publish({ name: 'f' });
  await app.invoke(functionId);
  await app.invoke(functionId);
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'an invocation');
  const before = await app.read();
  assert.match(before, '\ntabern_queue_waiting{kind="invocation"} 1\n');
  assert.match(before, '\ntabern_queue_running{kind="invocation"} 1\n');
  assert.not.match(before, 'tabern_sessions_ended_total{');
  const value = { code: 'WORKLOAD_ERROR', message: 'no', name: '', stack: '' };
  const outcome = { $case: 'failure', value } as const;
  await clients.runners.completeInvocation(
    { leaseId, outcome, sessionStartMs: 0, steps: [] },
    asRunner,
  );
  const ended = await app.read();
  assert.match(ended, /\ntabern_sessions_ended_total\{status="\w+",reason="function"\} 1\n/);
  assert.match(ended, '\nwebhook_pending 1\n');
  assert.match(ended, '\nwebhook_endpoints{status="enabled"} 1\n');
  await deliver(app, 204);
  const delivered = await app.read();
  assert.match(delivered, '\nwebhook_deliveries_total{state="delivered"} 1\n');
  assert.match(delivered, '\nwebhook_attempts_total{outcome="ok",class="2xx"} 1\n');
  assert.match(delivered, '\nwebhook_attempt_seconds_bucket{le="0.05"} 1\n');
  assert.match(delivered, '\nwebhook_attempt_seconds_bucket{le="0.025"} 0\n');
  assert.match(delivered, '\nwebhook_commit_to_send_seconds_count 1\n');
  assert.match(delivered, '\nwebhook_pending 0\n');
  assert.match(delivered, '\ntabern_runners{state="able"} 1\n');
  assert.is(await app.read().then(countsOf), countsOf(delivered), 'reading counts nothing twice');
  for (const name of ['example', functionId, 'default']) assert.not.match(delivered, name);
});

function countsOf(text: string): string {
  return text
    .split('\n')
    .filter((line) => /_total(?:\{|\s)/.test(line))
    .join('\n');
}

test('a session’s end is counted with its reason, as one of few labels', async () => {
  await using app = await openApp();
  const { clients, asProject, asRunner } = app;
  const lost = 'the browser was lost: it used more than 1 MiB of memory';
  for (const reason of ['its last client has left', 'what nobody foresaw', lost]) {
    const creating = clients.sessions.createSession(ANY, asProject);
    const { leaseId } = must((await app.lease('SESSION', 20_000))[0], 'a session');
    await clients.runners.startSession({ leaseId, startMs: app.clock.now() }, asRunner);
    await creating;
    const end = { leaseId, end: 'COMPLETED', reason, proxyBytes: 0 } as const;
    await clients.runners.completeSession(end, asRunner);
  }
  const text = await app.read();
  assert.match(text, '\ntabern_sessions_ended_total{status="COMPLETED",reason="left"} 1\n');
  assert.match(text, '\ntabern_sessions_ended_total{status="COMPLETED",reason="other"} 1\n');
  assert.match(text, '\ntabern_sessions_ended_total{status="COMPLETED",reason="browser_lost"} 1\n');
});

test.run();
