/** How attempts end: proto/spec/webhooks.md 4 to 7, 10. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { bootDeliveries, HOUR, OK, only } from '../../support/core/deliveries.ts';

const attempts = suite('core/webhooks/attempts');

attempts('a success ends the delivery and the failure streak', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  app.emit();
  await app.report([[only(await app.claim()), {}]]);
  assert.is(
    app.rows('SELECT first_failure_at FROM webhooks')[0]?.['first_failure_at'],
    app.clock.now(),
  );
  app.clock.advance(5_000);
  await app.report([[only(await app.claim()), OK]]);
  assert.equal(app.states(), [{ state: 'delivered', reason: null, due: null, tries: 2 }]);
  const sql = 'SELECT first_failure_at, consecutive_failures, next_due FROM webhooks';
  const cleared = { first_failure_at: null, consecutive_failures: 0, next_due: null };
  assert.equal(app.rows(sql), [cleared]);
});

attempts('each attempt is stored with its status, latency and excerpt', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  app.emit();
  await app.report([[only(await app.claim()), { response: Buffer.alloc(5_000, 'x') }]]);
  const [row] = app.rows('SELECT outcome, status, latency_ms, error, response FROM attempts');
  assert.is((must(row, 'attempt')['response'] as Buffer).length, 4_096);
  const { response: _, ...rest } = row ?? {};
  assert.equal(rest, { outcome: 'http', status: 500, latency_ms: 12, error: 'answered 500' });
});

attempts(
  'raw-bytes-identical-across-attempts: eight tries on the schedule, the same bytes and id',
  async () => {
    await using app = bootDeliveries();
    await app.addWebhook();
    app.emit({ results: 1 });
    const startedAt = app.clock.now();
    const seen: [number, string | undefined, string, string | undefined][] = [];
    for (let n = 0; n < 8; n += 1) {
      const due = Number(app.states()[0]?.['due']);
      assert.equal(n > 0 ? await app.claim() : [], [], 'not before it is due');
      app.clock.set(due);
      const claim = only(await app.claim());
      const { headers } = claim;
      const at = (app.clock.now() - startedAt) / 1_000;
      seen.push([
        at,
        headers['webhook-id'],
        claim.body.toString(),
        headers['x-svc-webhook-attempt'],
      ]);
      await app.report([[claim, {}]]);
    }
    assert.equal(
      seen.map(([at]) => at),
      [0, 5, 305, 2_105, 9_305, 27_305, 63_305, 99_305],
    );
    assert.is(new Set(seen.map(([, id, body]) => `${id} ${body}`)).size, 1);
    assert.equal(
      seen.map(([, , , attempt]) => attempt),
      ['1', '2', '3', '4', '5', '6', '7', '8'],
    );
    const last = { state: 'exhausted', reason: 'attempts_failed', due: null, tries: 8 };
    assert.equal(app.states(), [last]);
    app.clock.advance(365 * 24 * HOUR);
    assert.equal(await app.claim(), []);
  },
);

attempts('a Retry-After between this step and the next is used', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  app.emit();
  await app.report([[only(await app.claim()), { status: 503, retryAfterSeconds: 200 }]]);
  assert.is(app.states()[0]?.['due'], app.clock.now() + 200_000);
});

attempts('a repeated report changes nothing', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  app.emit();
  const claim = only(await app.claim());
  await app.report([[claim, {}]]);
  const before = app.rows('SELECT * FROM deliveries');
  app.clock.advance(1);
  await app.report([
    [claim, {}],
    [claim, OK],
  ]);
  assert.equal(app.rows('SELECT * FROM deliveries'), before);
});

attempts('an unsent delivery is due again at once, without an attempt', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  app.emit();
  await app.report([[only(await app.claim()), { outcome: 'UNSENT', status: 0, error: '' }]]);
  assert.equal(app.rows('SELECT id FROM attempts'), []);
  assert.equal(app.states(), [{ state: 'pending', reason: null, due: app.clock.now(), tries: 0 }]);
  assert.is(only(await app.claim()).headers['x-svc-webhook-attempt'], '1');
});

attempts(
  'a late failure only completes its attempt; a late success completes the delivery',
  async () => {
    await using app = bootDeliveries();
    await app.addWebhook();
    app.emit();
    const lost = only(await app.claim());
    app.clock.advance(45_000);
    const again = only(await app.claim());
    await app.report([[lost, {}]]);
    assert.is(app.states()[0]?.['state'], 'in_flight');
    assert.is(app.rows('SELECT outcome FROM attempts WHERE n = 1')[0]?.['outcome'], 'http');
    app.clock.advance(45_000);
    only(await app.claim());
    await app.report([[again, OK]]);
    assert.is(app.states()[0]?.['state'], 'delivered');
    app.clock.advance(HOUR);
    assert.equal(await app.claim(), []);
  },
);

attempts('five interruptions count as one failed try', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  app.emit();
  for (let n = 0; n < 5; n += 1) {
    only(await app.claim());
    app.clock.advance(45_000);
  }
  assert.equal(await app.claim(), []);
  const next = { state: 'pending', reason: null, due: app.clock.now() + 5_000, tries: 1 };
  assert.equal(app.states(), [next]);
});

attempts(
  'disabled-stops: after five days of failure pending and new deliveries are skipped',
  async () => {
    await using app = bootDeliveries();
    await app.addWebhook();
    for (let hours = 0; hours <= 120; hours += 1) {
      app.emit();
      const claims = await app.claim();
      await app.report(claims.map((claim) => [claim, { outcome: 'BLOCKED', status: 0 }]));
      app.clock.advance(HOUR);
    }
    assert.equal(app.rows('SELECT status, disabled_reason, next_due FROM webhooks'), [
      { status: 'disabled', disabled_reason: 'failing_5d', next_due: null },
    ]);
    assert.equal(app.rows(`SELECT id FROM deliveries WHERE state IN ('pending', 'in_flight')`), []);
    app.emit();
    assert.is(app.states().at(-1)?.['reason'], 'endpoint_disabled');
    app.clock.advance(48 * HOUR);
    assert.equal(await app.claim(), []);
  },
);

attempts('abort-message on a failure ends the delivery, and counts as a failure', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  app.emit();
  await app.report([[only(await app.claim()), { status: 410, abortMessage: true }]]);
  const over = { state: 'exhausted', reason: 'aborted_by_receiver', due: null, tries: 1 };
  assert.equal(app.states(), [over]);
  assert.is(app.rows('SELECT consecutive_failures AS n FROM webhooks')[0]?.['n'], 1);
  app.emit();
  await app.report([[only(await app.claim()), { ...OK, abortMessage: true }]]);
  assert.is(app.states()[1]?.['state'], 'delivered', 'with a success it means nothing');
});

attempts(
  'disabled-stops: an attempt in flight ends and is stored; its success does not enable',
  async () => {
    await using app = bootDeliveries();
    await app.addWebhook();
    app.emit();
    app.emit();
    const [fails, succeeds] = await app.claim();
    app.db.exec(`UPDATE webhooks SET status = 'disabled'`);
    await app.report([
      [must(fails, 'claim'), {}],
      [must(succeeds, 'claim'), OK],
    ]);
    const states = app.states().map(({ state, reason }) => [state, reason]);
    assert.equal(states, [
      ['skipped', 'endpoint_disabled'],
      ['delivered', null],
    ]);
    assert.equal(app.rows('SELECT status FROM webhooks'), [{ status: 'disabled' }]);
    assert.is(app.rows('SELECT id FROM attempts WHERE outcome IS NOT NULL').length, 2);
  },
);

attempts('a delivery in flight at a deletion stays cancelled when its attempt fails', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook();
  app.emit();
  const claim = only(await app.claim());
  await app.webhooks.deleteWebhook({ id }, app.caller);
  await app.report([[claim, {}]]);
  assert.is(app.states()[0]?.['state'], 'cancelled');
  assert.is(app.rows('SELECT outcome FROM attempts')[0]?.['outcome'], 'http');
});

attempts('unsubscribe-cancels: a delivery in flight is not retried', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook();
  app.emit();
  const claim = only(await app.claim());
  const change = { id, endpoint: undefined, eventTypes: ['functions.builds.failed'] };
  await app.webhooks.updateWebhook(change, app.caller);
  await app.report([[claim, {}]]);
  assert.is(app.states()[0]?.['reason'], 'unsubscribed');
});

attempts('an interrupted delivery is not retried after an unsubscription', async () => {
  const states = async (
    change: (app: ReturnType<typeof bootDeliveries>, id: string) => unknown,
  ) => {
    await using app = bootDeliveries();
    const { id } = await app.addWebhook();
    app.emit();
    only(await app.claim());
    await change(app, id);
    app.clock.advance(45_001);
    assert.equal(await app.claim(), []);
    return app.states().map(({ state, reason, due }) => ({ state, reason, due }));
  };
  const unsubscribe = (app: ReturnType<typeof bootDeliveries>, id: string) =>
    app.webhooks.updateWebhook(
      { id, endpoint: undefined, eventTypes: ['functions.builds.failed'] },
      app.caller,
    );
  const disable = (app: ReturnType<typeof bootDeliveries>) =>
    app.rows("UPDATE webhooks SET status = 'disabled' RETURNING id");
  const cancelled = { state: 'cancelled', reason: 'unsubscribed', due: null };
  assert.equal(await states(unsubscribe), [cancelled]);
  const skipped = { state: 'skipped', reason: 'endpoint_disabled', due: null };
  assert.equal(await states(disable), [skipped]);
});

attempts.run();
