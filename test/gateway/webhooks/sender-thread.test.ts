/** The sender's thread: crashes, isolation and hostile endpoints. Attempts are real, over TLS. */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import type { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { bootDispatch } from '../../support/core/dispatch.ts';
import { until } from '../../support/poll.ts';
import { authority } from '../../support/servers/certificates.ts';
import { startDns } from '../../support/servers/dns.ts';
import { dripping, flooding, startHostile } from '../../support/servers/hostile.ts';
import type { Answer } from '../../support/servers/receiver.ts';

const thread = suite('gateway/webhooks/sender-thread');

thread('no thread runs until a delivery is due', async () => {
  await using app = await bootDispatch();
  const workers: Worker[] = [];
  await app.core.addWebhook(app.receiver.url);
  await using _ = app.start({ onThread: (worker) => void workers.push(worker) });
  await until(() => app.metadata.length > 0);
  assert.is(workers.length, 0);
  app.core.emit();
  await until(() => app.states()[0] === 'delivered');
  app.core.emit();
  await until(() => app.states()[1] === 'delivered');
  assert.is(workers.length, 1);
  assert.is(app.receiver.requests.length, 2);
});

thread('a sender without a thread closes at once', async () => {
  await using app = await bootDispatch();
  const workers: Worker[] = [];
  let isWaiting = false;
  const claimDeliveries: typeof app.client.claimDeliveries = async (_, { signal } = {}) => {
    isWaiting = true;
    await once(must(signal, 'a signal'), 'abort');
    throw new Fault('CANCELLED', 'The caller left.');
  };
  const onThread = (worker: Worker): void => void workers.push(worker);
  const sender = app.start({ client: { ...app.client, claimDeliveries }, onThread });
  await until(() => isWaiting);
  await sender.close();
  assert.is(workers.length, 0);
});

thread('a first delivery that is claimed during the close is handed back', async () => {
  await using app = await bootDispatch();
  const claimDeliveries: typeof app.client.claimDeliveries = async (request, options) => {
    const claimed = await app.client.claimDeliveries(request, { ...options, signal: undefined });
    if (claimed.claims.length > 0) closed.resolve(sender.close());
    return claimed;
  };
  const closed = Promise.withResolvers<void>();
  await app.core.addWebhook(app.receiver.url);
  app.core.emit();
  const workers: Worker[] = [];
  const onThread = (worker: Worker): void => void workers.push(worker);
  const sender = app.start({ client: { ...app.client, claimDeliveries }, onThread });
  await closed.promise;
  assert.is(workers.length, 0);
  await using _ = app.start({ senderId: 'two' }); // which does not wait for the lease of the first
  await until(() => app.states()[0] === 'delivered');
  assert.is(app.receiver.requests.length, 1);
});

thread('deliveries are handed back when their thread comes late, and claimed anew', async () => {
  await using app = await bootDispatch();
  await app.core.addWebhook(app.receiver.url);
  app.core.emit();
  const outcomes: string[] = [];
  const reportAttempts: typeof app.client.reportAttempts = (request, options) => {
    outcomes.push(...request.reports.map(({ outcome }) => outcome));
    return app.client.reportAttempts(request, options);
  };
  const { now } = performance;
  const onThread = (): void => {
    performance.now = () => now.call(performance) + 2_000;
  };
  try {
    await using _ = app.start({ client: { ...app.client, reportAttempts }, onThread });
    await until(() => app.states()[0] === 'delivered');
  } finally {
    performance.now = now;
  }
  assert.is(outcomes[0], 'UNSENT');
  assert.is(app.receiver.requests.length, 1);
  assert.equal(app.core.rows('SELECT outcome FROM attempts'), [{ outcome: 'ok' }]);
});

thread('threads that cannot start use up no delivery', async () => {
  await using app = await bootDispatch();
  const workers: Worker[] = [];
  await app.core.addWebhook(app.receiver.url);
  app.core.emit();
  const onThread = (worker: Worker): void => {
    workers.push(worker);
    if (workers.length <= 2) void worker.terminate(); // before it claims
  };
  await using _ = app.start({ onThread });
  await until(() => app.states()[0] === 'delivered');
  assert.is(workers.length, 3);
  assert.is(app.core.states()[0]?.['tries'], 1);
  assert.equal(app.core.rows('SELECT outcome FROM attempts'), [{ outcome: 'ok' }]);
});

thread('kill-worker: deliveries in flight are repeated, with the same id and bytes', async () => {
  await using app = await bootDispatch();
  const workers: Worker[] = [];
  await app.core.addWebhook(app.receiver.url);
  for (let n = 0; n < 20; n += 1) app.core.emit({ n });
  // The first eight hang: they are in flight when the thread dies.
  app.receiver.script(...Array.from({ length: 8 }, () => () => {}));
  await using _ = app.start({ onThread: (worker) => void workers.push(worker) });
  await until(() => app.receiver.requests.length === 8);
  await workers[0]?.terminate();
  await until(() => app.states().every((state) => state === 'delivered'));
  assert.is(workers.length, 2);

  const byId = Map.groupBy(app.receiver.requests, ({ headers }) => `${headers['webhook-id']}`);
  assert.is(byId.size, 20);
  assert.is(app.receiver.requests.length, 28, 'what was in flight came twice, nothing else did');
  for (const [first, ...more] of byId.values()) {
    for (const one of more) assert.equal(one.body, first?.body);
  }
  const interrupted = app.core.rows(`SELECT id FROM attempts WHERE outcome = 'interrupted'`);
  assert.is(interrupted.length, 8);
  const tries = app.core.states().map((one) => one['tries']);
  assert.equal(new Set(tries), new Set([1]), 'the death is no try of theirs');
});

thread('delete-stops-at-once: an attempt in flight ends when its webhook is deleted', async () => {
  await using app = await bootDispatch();
  const [gone, stays] = [`${app.receiver.url}/gone`, `${app.receiver.url}/stays`];
  const { id } = await app.core.addWebhook(gone);
  await app.core.addWebhook(stays);
  const closed: string[] = [];
  const hang: Answer = (response, { path }) =>
    void response.once('close', () => void closed.push(path));
  app.receiver.script(hang, hang);
  app.core.emit();
  await using _ = app.start({ attemptsEndMs: 0 });
  await until(() => app.receiver.requests.length === 2);
  await app.core.webhooks.deleteWebhook({ id }, app.core.caller);
  await until(() => closed.length > 0);
  assert.equal(closed, ['/gone']);
  const ended = () =>
    app.core.rows('SELECT outcome, error, endpoint FROM attempts WHERE ended_at IS NOT NULL');
  await until(() => ended().length > 0);
  const error = 'the webhook was deleted before an answer';
  assert.equal(ended(), [{ outcome: 'reset', error, endpoint: gone }]);
  app.core.emit();
  await until(() => app.receiver.requests.length === 3);
  assert.is(app.receiver.requests.filter(({ path }) => path === '/gone').length, 1);
});

thread(
  'a service that was started with a low priority keeps it: users may not raise theirs',
  async () => {
    const before = getPriority();
    const low = Math.max(before, 10);
    const isRoot = process.getuid?.() === 0;
    setPriority(low);
    try {
      await using app = await bootDispatch();
      const earlier = new Set(nicenesses().keys());
      await app.core.addWebhook(app.receiver.url);
      app.core.emit();
      await using _ = app.start();
      await until(() => app.states().every((state) => state === 'delivered'));
      const raised = [...nicenesses()].filter(
        ([id, niceness]) => !earlier.has(id) && niceness < low,
      );
      assert.equal(raised, []);
    } finally {
      if (isRoot) setPriority(before);
    }
  },
);

/** Of each thread of this process. */
function nicenesses(): Map<string, number> {
  const TASKS = '/proc/self/task';
  return new Map(
    readdirSync(TASKS).map((id) => {
      const stat = readFileSync(`${TASKS}/${id}/stat`, 'utf8');
      return [id, Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])];
    }),
  );
}

thread('kill-worker: a thread that crashes repeatedly is restarted', async () => {
  await using app = await bootDispatch();
  const workers: Worker[] = [];
  await app.core.addWebhook(app.receiver.url);
  app.receiver.script(() => {}); // in flight at the first death
  app.core.emit();
  await using _ = app.start({ onThread: (worker) => void workers.push(worker) });
  await until(() => app.receiver.requests.length === 1);
  for (let death = 1; death <= 3; death += 1) {
    await until(() => workers.length === death);
    await workers.at(-1)?.terminate();
  }
  await until(() => app.states()[0] === 'delivered');
  assert.is(new Set(app.receiver.requests.map(({ headers }) => headers['webhook-id'])).size, 1);
});

thread('kill-worker: close does not wait for a crashed thread', async () => {
  await using app = await bootDispatch();
  const workers: Worker[] = [];
  await app.core.addWebhook(app.receiver.url);
  app.core.emit();
  const sender = app.start({ onThread: (worker) => void workers.push(worker) });
  await until(() => workers.length === 1);
  await workers[0]?.terminate();
  await sender.close();
  assert.is(workers.length, 1);
});

thread('the thread has no variable of the service and no token', async () => {
  await using app = await bootDispatch();
  await app.core.addWebhook(app.receiver.url);
  app.core.emit();
  process.env['TABERN_TEST_MARK'] = 'must stay here';
  const told: unknown[] = [];
  await using _ = app.start({
    onThread: (worker) => void worker.on('message', (message) => told.push(message)),
  });
  await until(() => told.length > 0);
  assert.equal(told[0], { kind: 'claim', id: 0, max: 64 });
  delete process.env['TABERN_TEST_MARK'];
});

thread('slow-dns-isolation: silent DNS servers delay no other name', async () => {
  await using app = await bootDispatch();
  await using dns = await startDns((name) =>
    name.startsWith('silent') ? undefined : ['127.0.0.1'],
  );
  const port = new URL(app.receiver.url).port;
  for (let n = 0; n < 3; n += 1) await app.core.addWebhook(`https://silent${n}.example.com/`);
  for (let n = 0; n < 8; n += 1) app.core.emit({ n });
  await using _ = app.start({ dnsServers: [dns.server], attemptsEndMs: 0 });
  await until(() => app.core.rows('SELECT id FROM attempts').length === 24);
  await until(() => new Set(dns.asked).size === 3);
  await app.core.addWebhook(`https://hook.example.com:${port}/`);
  app.core.emit({ n: 'well' });
  await app.receiver.received(({ headers }) => headers.host?.startsWith('hook.') === true);
  const ended = app.core.rows('SELECT id, outcome FROM attempts WHERE ended_at IS NOT NULL');
  assert.ok(ended.length <= 1, 'all others wait for their names');
});

thread('slow-dns-isolation: a name with a silent DNS server fails', async () => {
  await using app = await bootDispatch();
  await using dns = await startDns(() => undefined);
  await app.core.addWebhook('https://silent.example.com/');
  app.core.emit();
  await using _ = app.start({ dnsServers: [dns.server] });
  await until(() => app.core.states()[0]?.['tries'] === 1);
  const [attempt] = app.core.rows('SELECT outcome, error FROM attempts');
  assert.equal(attempt, { outcome: 'dns', error: 'the name did not resolve' });
});

thread('hang-drip-infinite-gzip: concurrent hostile endpoints do not end the thread', async () => {
  await using app = await bootDispatch();
  const ca = await authority();
  const tls = await ca.issue();
  await using drip = await startHostile(dripping('HTTP/1.1 200 OK\r\n', 'x: y\r\n'), tls);
  await using flood = await startHostile(
    flooding('HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(9_999)),
    tls,
  );
  await using hints = await startHostile(flooding('', 'HTTP/1.1 103 Hints\r\n\r\n'), tls);
  await using garbage = await startHostile(flooding('', '\0'.repeat(9_999)), tls);
  const workers: Worker[] = [];
  await using _ = app.start({
    ca: ca.cert,
    onThread: (worker) => void workers.push(worker),
    budget: { wholeMs: 2_000, answerMs: 500, bodyMs: 200 },
  });
  for (const { url } of [drip, flood, hints, garbage]) await app.core.addWebhook(url);
  for (let n = 0; n < 8; n += 1) app.core.emit({ n });
  await until(() => {
    const [row] = app.core.rows('SELECT COUNT(*) AS n FROM attempts WHERE ended_at IS NOT NULL');
    return row?.['n'] === 32;
  });
  assert.is(workers.length, 1);
});

thread.run();
