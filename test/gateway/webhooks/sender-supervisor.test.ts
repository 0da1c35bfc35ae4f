/** The sender on a real core, over its bytes: commit -> POST -> attempt on record. */
import { Webhook } from 'standardwebhooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Fault } from '../../../proto/rpc/errors.ts';
import { bootDispatch } from '../../support/core/dispatch.ts';
import { until } from '../../support/poll.ts';

const dispatcher = suite('gateway/webhooks/sender-supervisor');

dispatcher(
  'an event arrives, verifies over its raw bytes, and its attempt is on record',
  async () => {
    await using app = await bootDispatch();
    await using _ = app.start();
    const webhook = await app.core.addWebhook(app.receiver.url);
    app.core.emit({ status: 'COMPLETED', results: { title: 'Ünïcode 🦊' } });
    const got = await app.receiver.received(() => true);
    const headers = got.headers as Record<string, string>;
    const envelope = new Webhook(webhook.secret ?? '').verify(got.body, headers) as {
      data: { results: unknown };
    };
    assert.equal(envelope.data.results, { title: 'Ünïcode 🦊' });
    await until(() => app.states()[0] === 'delivered');
    const [attempt] = app.core.rows('SELECT outcome, status, n FROM attempts');
    assert.equal(attempt, { outcome: 'ok', status: 200, n: 1 });
    assert.is(app.metadata[0], 'Bearer token');
  },
);

dispatcher('a failed delivery is retried with a new signature, the same id and bytes', async () => {
  await using app = await bootDispatch();
  app.receiver.script(500);
  await using _ = app.start();
  const webhook = await app.core.addWebhook(app.receiver.url);
  app.core.emit({ n: 1 });
  await until(() => app.core.states()[0]?.['tries'] === 1);
  app.core.clock.advance(5_000);
  // A claim that waits does not see the clock jump: it ends after 5 s of its own.
  await until(() => app.states()[0] === 'delivered');
  const [first, second] = app.receiver.requests;
  assert.is(app.receiver.requests.length, 2);
  assert.equal(first?.body, second?.body);
  assert.is(first?.headers['webhook-id'], second?.headers['webhook-id']);
  assert.is.not(first?.headers['webhook-signature'], second?.headers['webhook-signature']);
  const headers = second?.headers as Record<string, string>;
  new Webhook(webhook.secret ?? '').verify(second?.body ?? '', headers);
});

dispatcher('a hundred events each arrive once', async () => {
  await using app = await bootDispatch();
  await app.core.addWebhook(app.receiver.url);
  await app.core.addWebhook(`${app.receiver.url}/second`);
  for (let n = 0; n < 50; n += 1) app.core.emit({ n });
  await using _ = app.start();
  await until(() => app.states().every((state) => state === 'delivered'));
  const ids = app.receiver.requests.map(({ headers, path }) => `${path} ${headers['webhook-id']}`);
  assert.equal([ids.length, new Set(ids).size], [100, 100]);
});

dispatcher('slow-endpoint-isolation: a hung endpoint does not delay another', async () => {
  await using app = await bootDispatch();
  app.receiver.script(...Array.from({ length: 8 }, () => () => {}));
  await app.core.addWebhook(`${app.receiver.url}/hung`);
  for (let n = 0; n < 20; n += 1) app.core.emit();
  await using _ = app.start({ attemptsEndMs: 0 });
  await until(() => app.receiver.requests.length === 8);
  await app.core.addWebhook(`${app.receiver.url}/well`);
  app.core.emit();
  await app.receiver.received(({ path }) => path === '/well');
  assert.is(app.receiver.requests.length, 9, 'eight hang, the rest of theirs wait');
});

dispatcher('a report that core does not accept is retried until it does', async () => {
  await using app = await bootDispatch();
  let refusals = 2;
  const reportAttempts: typeof app.client.reportAttempts = async (request, options) => {
    if (refusals === 0) return app.client.reportAttempts(request, options);
    refusals -= 1;
    throw new Fault('CORE_UNAVAILABLE', 'not now');
  };
  await using _ = app.start({ client: { ...app.client, reportAttempts } });
  await app.core.addWebhook(app.receiver.url);
  app.core.emit();
  await until(() => app.states()[0] === 'delivered');
  assert.is(app.receiver.requests.length, 1);
});

dispatcher('an unreachable core is called again', async () => {
  await using app = await bootDispatch();
  let refusals = 2;
  const claimDeliveries: typeof app.client.claimDeliveries = async (request, options) => {
    if (refusals === 0) return app.client.claimDeliveries(request, options);
    refusals -= 1;
    throw new Fault('CORE_UNAVAILABLE', 'not now');
  };
  await app.core.addWebhook(app.receiver.url);
  app.core.emit();
  await using _ = app.start({ client: { ...app.client, claimDeliveries } });
  await until(() => app.states()[0] === 'delivered');
});

dispatcher('close waits for an attempt, reports it, and sends nothing after', async () => {
  await using app = await bootDispatch();
  const sender = app.start();
  app.receiver.script((response) => void setTimeout(() => response.writeHead(204).end(), 300));
  await app.core.addWebhook(app.receiver.url);
  app.core.emit();
  await app.receiver.received(() => true);
  await sender.close();
  assert.equal(app.states(), ['delivered']);
  app.core.emit();
  await using _ = app.start({ senderId: 'two' });
  await until(() => app.states()[1] === 'delivered');
  assert.is(app.receiver.requests.length, 2);
});

dispatcher('close aborts an attempt that does not end', async () => {
  await using app = await bootDispatch();
  const sender = app.start({ attemptsEndMs: 50 });
  app.receiver.script(() => {});
  await app.core.addWebhook(app.receiver.url);
  app.core.emit();
  await app.receiver.received(() => true);
  await sender.close();
  const [attempt] = app.core.rows('SELECT outcome, error FROM attempts');
  assert.equal(attempt, { outcome: 'reset', error: 'the sender stopped before an answer' });
});

dispatcher.run();
