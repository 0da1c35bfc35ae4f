/** Deliveries requested by users: proto/spec/webhooks.md 4, 7, 10. */
import { Webhook } from 'standardwebhooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import { callerOf } from '../../support/core/bare-store.ts';
import { bootDeliveries, HOUR, OK, only } from '../../support/core/deliveries.ts';
import { faultOf } from '../../support/fault.ts';

const replays = suite('core/webhooks/redeliveries');
const DAY = 24 * HOUR;
type App = ReturnType<typeof bootDeliveries>;

/** A webhook that five days of failure disabled; the streak it had is left to look at. */
async function disabledWebhook(app: App) {
  const webhook = await app.addWebhook();
  app.db.exec(`UPDATE webhooks SET status = 'disabled', disabled_at = 1,
    disabled_reason = 'failing_5d', first_failure_at = 7, last_attempt_at = 8`);
  return webhook;
}

const streakOf = (app: App) =>
  app.rows('SELECT status, first_failure_at, last_attempt_at FROM webhooks');
const triggersOf = (app: App) =>
  app.rows('SELECT trigger FROM attempts ORDER BY id').map(({ trigger }) => trigger);
const eventOf = (app: App) => String(app.rows('SELECT id FROM events')[0]?.['id']);
const isoOf = (at: number) => new Date(at).toISOString();

replays('a test is sent to a disabled webhook, and its success does not enable it', async () => {
  await using app = bootDeliveries();
  const { id, secret = '' } = await disabledWebhook(app);
  const before = app.rows('SELECT * FROM webhooks');
  const { delivery } = await app.webhooks.sendTest({ id }, app.caller);
  assert.is(delivery?.status, 'PENDING');
  assert.is(delivery?.eventType, 'webhooks.test');
  const claim = only(await app.claim());
  const body = new Webhook(secret).verify(claim.body, claim.headers) as Record<string, unknown>;
  assert.equal([body['id'], body['type']], [delivery?.id, 'webhooks.test']);
  await app.report([[claim, OK]]);
  assert.equal(triggersOf(app), ['manual']);
  const left = ['last_served', 'paced_until', 'next_due'];
  const shown = (row?: Record<string, unknown>) =>
    Object.entries(row ?? {}).filter(([name]) => !left.includes(name));
  assert.equal(shown(app.rows('SELECT * FROM webhooks')[0]), shown(before[0]));
});

replays('a failed test has no retry and no failure streak', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook();
  await app.webhooks.sendTest({ id }, app.caller);
  await app.report([[only(await app.claim()), {}]]);
  assert.is(app.states()[0]?.['state'], 'exhausted');
  const unmoved = [{ status: 'enabled', first_failure_at: null, last_attempt_at: null }];
  assert.equal(streakOf(app), unmoved);
  await app.webhooks.sendTest({ id }, app.caller);
  assert.is(app.states().length, 2, 'a webhook may be tested again');
});

replays('a test is sent to one webhook, also after a change of the subscription', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook('https://example.com/1');
  await app.addWebhook('https://example.com/2');
  await app.webhooks.sendTest({ id }, app.caller);
  const change = { id, endpoint: undefined, eventTypes: ['functions.builds.failed'] };
  await app.webhooks.updateWebhook(change, app.caller);
  assert.is(only(await app.claim()).webhookId, id);
});

replays('a redelivery has the same body and id, and the current secret', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook();
  app.emit({ results: 'once' });
  const first = only(await app.claim());
  await app.report([[first, OK]]);
  const rotated = await app.webhooks.rotateSecret({ id, revokeImmediately: true }, app.caller);
  const deliveryId = eventOf(app);
  const { delivery } = await app.webhooks.replayDelivery({ id, deliveryId }, app.caller);
  assert.is(delivery?.status, 'PENDING');
  assert.is(delivery?.endedAt, undefined);
  const again = only(await app.claim());
  assert.equal([again.headers['webhook-id'], again.body], [deliveryId, first.body]);
  new Webhook(rotated.secret).verify(again.body, again.headers);
  assert.equal(triggersOf(app), ['event', 'manual']);
});

replays(
  'a redelivery has the whole schedule, also on a disabled webhook, and no streak',
  async () => {
    await using app = bootDeliveries();
    const { id } = await disabledWebhook(app);
    const before = streakOf(app);
    app.emit();
    assert.is(app.states()[0]?.['state'], 'skipped');
    await app.webhooks.replayDelivery({ id, deliveryId: eventOf(app) }, app.caller);
    for (let n = 0; n < 8; n += 1) {
      app.clock.set(Number(app.states()[0]?.['due']));
      await app.report([[only(await app.claim()), {}]]);
    }
    assert.equal(app.states()[0], {
      state: 'exhausted',
      reason: 'attempts_failed',
      due: null,
      tries: 8,
    });
    assert.equal(streakOf(app), before);
    assert.equal(triggersOf(app), ['manual', ...Array(7).fill('retry')].map(String));
  },
);

replays('a disabled webhook receives redeliveries only', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook();
  app.emit({}, 'first');
  const claim = only(await app.claim());
  app.db.exec(`UPDATE webhooks SET status = 'disabled'`);
  await app.webhooks.sendTest({ id }, app.caller);
  app.clock.advance(45_000);
  const test = only(await app.claim());
  assert.is.not(test.deliveryId, claim.deliveryId);
  assert.is(app.states()[0]?.['reason'], 'endpoint_disabled', 'its lease lapsed');
});

for (const state of ['pending', 'in_flight'] as const) {
  replays(`a delivery that is ${state} is not redelivered`, async () => {
    await using app = bootDeliveries();
    const { id } = await app.addWebhook();
    app.emit();
    if (state === 'in_flight') await app.claim();
    const before = app.rows('SELECT * FROM deliveries');
    const replay = app.webhooks.replayDelivery({ id, deliveryId: eventOf(app) }, app.caller);
    const fault = await faultOf(replay);
    assert.equal([fault.reason, fault.row.http], ['DELIVERY_NOT_ENDED', 409]);
    assert.equal(app.rows('SELECT * FROM deliveries'), before);
  });
}

replays('nothing is sent to a webhook of another project, or a deleted one', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook();
  app.emit();
  await app.report([[only(await app.claim()), OK]]);
  const deliveryId = eventOf(app);
  const since = isoOf(app.clock.now() - HOUR);
  const all = (caller: typeof app.caller) => [
    app.webhooks.sendTest({ id }, caller),
    app.webhooks.replayDelivery({ id, deliveryId }, caller),
    app.webhooks.recoverDeliveries({ id, since, until: undefined }, caller),
    app.webhooks.enableWebhook({ id }, caller),
  ];
  for (const one of all(callerOf(newId()))) assert.is((await faultOf(one)).row.http, 404);
  await app.webhooks.deleteWebhook({ id }, app.caller);
  for (const one of all(app.caller)) assert.is((await faultOf(one)).row.http, 404);
  assert.equal(await app.claim(), []);
});

replays('enable-recover: enabling sends new events, a recovery sends the lost ones', async () => {
  await using app = bootDeliveries();
  const { id } = await disabledWebhook(app);
  app.emit({}, 'long ago');
  app.clock.advance(DAY);
  const since = isoOf(app.clock.now());
  app.emit({}, 'lost');
  app.clock.advance(1_000);
  const until = isoOf(app.clock.now());
  app.clock.advance(1_000);
  app.emit({}, 'later');
  assert.equal(await app.claim(), []);

  const { webhook } = await app.webhooks.enableWebhook({ id }, app.caller);
  assert.is(webhook?.status, 'ENABLED');
  const { disabledAt, disabledReason, failingSince } = must(webhook, 'webhook');
  assert.equal([disabledAt, disabledReason, failingSince], [undefined, undefined, undefined]);
  assert.equal(await app.claim(), [], 'what was skipped stays so');
  const recovered = await app.webhooks.recoverDeliveries({ id, since, until }, app.caller);
  assert.equal(recovered, { recovered: 1 });
  assert.is(JSON.parse(only(await app.claim()).body.toString()).resourceId, 'lost');
  app.emit({}, 'new');
  assert.is(JSON.parse(only(await app.claim()).body.toString()).resourceId, 'new');
});

replays(
  'a recovery repeats skipped and exhausted deliveries, no tests, 10,000 at most',
  async () => {
    await using app = bootDeliveries();
    const { id } = await disabledWebhook(app);
    const at = app.clock.now();
    app.db.exec(`
    WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10150)
    INSERT INTO events (id, project_id, type, resource_id, body, created_at)
    SELECT 'e' || n, '${app.projectId}', 'functions.invocations.completed', 'r' || n, x'7b7d', ${at}
    FROM numbers;
    INSERT INTO deliveries (event_id, webhook_id, state, created_at)
    SELECT id, '${id}', CASE rowid % 3 WHEN 0 THEN 'skipped' ELSE 'exhausted' END, created_at
    FROM events;
    UPDATE deliveries SET state = 'delivered' WHERE id <= 50;
    UPDATE deliveries SET state = 'cancelled' WHERE id BETWEEN 51 AND 100`);
    await app.webhooks.sendTest({ id }, app.caller);
    app.db.exec(`UPDATE deliveries SET state = 'exhausted', due = NULL WHERE id = 10151`);
    const recover = () =>
      app.webhooks.recoverDeliveries({ id, since: isoOf(at), until: undefined }, app.caller);
    assert.equal(await recover(), { recovered: 10_000 });
    assert.equal(await recover(), { recovered: 50 });
    assert.equal(await recover(), { recovered: 0 });
    const counts = app.rows('SELECT state, COUNT(*) AS n FROM deliveries GROUP BY state');
    assert.equal(counts, [
      { state: 'cancelled', n: 50 },
      { state: 'delivered', n: 50 },
      { state: 'exhausted', n: 1 },
      { state: 'pending', n: 10_050 },
    ]);
  },
);

for (const [what, since, until] of [
  ['a span that ends before it begins', -HOUR, -2 * HOUR],
  ['a span that begins more than 30 days ago', -31 * DAY, 0],
  ['a time without a zone', '2026-01-01T00:00:00', 0],
  ['what is no time', 'yesterday', 0],
] as const) {
  replays(`a recovery of ${what} is refused`, async () => {
    await using app = bootDeliveries();
    const { id } = await disabledWebhook(app);
    app.emit();
    const textOf = (from: number | string) =>
      typeof from === 'string' ? from : isoOf(app.clock.now() + from);
    const span = { id, since: textOf(since), until: textOf(until) };
    const fault = await faultOf(app.webhooks.recoverDeliveries(span, app.caller));
    assert.equal([fault.reason, fault.facts['field']], ['INVALID_FIELD', 'since']);
    assert.is(app.states()[0]?.['state'], 'skipped');
  });
}

replays.run();
