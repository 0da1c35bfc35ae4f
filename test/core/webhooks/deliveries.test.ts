/** The outbox and the claim: proto/spec/webhooks.md 1, 2, 9. */

import { Webhook } from 'standardwebhooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import { bootDeliveries, HOUR, OK, only } from '../../support/core/deliveries.ts';
import { faultOf } from '../../support/fault.ts';

const deliveries = suite('core/webhooks/deliveries');

deliveries('an event without a subscription leaves no row', async () => {
  await using app = bootDeliveries();
  app.emit();
  assert.equal(app.rows('SELECT id FROM events'), []);
});

deliveries('an event creates one delivery per subscribed webhook of its project', async () => {
  await using app = bootDeliveries();
  await app.addWebhook('https://example.com/1');
  await app.addWebhook('https://example.com/2');
  const { id } = await app.addWebhook('https://example.com/3');
  const change = { id, endpoint: undefined, eventTypes: ['functions.builds.failed'] };
  await app.webhooks.updateWebhook(change, app.caller);
  app.emit();
  assert.is(app.states().length, 2);
  assert.is(app.rows('SELECT id FROM events').length, 1);
});

deliveries('a repeated event is stored once', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  app.emit({}, 'resource');
  app.emit({}, 'resource');
  assert.is(app.states().length, 1);
});

deliveries('the receiver accepts the signature of a claim, and its attempt is stored', async () => {
  await using app = bootDeliveries();
  const webhook = await app.addWebhook('https://example.com/hook');
  app.emit({ results: { title: 'Ünïcode' } });
  const claim = only(await app.claim());
  assert.equal(Object.keys(claim.headers).sort(), [
    'content-type',
    'user-agent',
    'webhook-id',
    'webhook-signature',
    'webhook-timestamp',
    'x-svc-webhook-attempt',
  ]);
  const envelope = new Webhook(webhook.secret ?? '').verify(claim.body, claim.headers);
  assert.is((envelope as { id: string }).id, claim.headers['webhook-id']);
  assert.is(claim.endpoint, 'https://example.com/hook');
  const started = app.rows('SELECT n, trigger, started_at, ended_at, endpoint FROM attempts');
  const row = { n: 1, trigger: 'event', started_at: app.clock.now(), ended_at: null };
  assert.equal(started, [{ ...row, endpoint: 'https://example.com/hook' }]);
  assert.equal(await app.claim(), [], 'the claim is the lock');
});

deliveries(
  'signature-two-secrets-in-overlap: both sign; after a day the old one does not',
  async () => {
    await using app = bootDeliveries();
    const { id, secret = '' } = await app.addWebhook();
    const rotated = await app.webhooks.rotateSecret({ id, revokeImmediately: false }, app.caller);
    app.emit();
    const both = only(await app.claim());
    for (const one of [secret, rotated.secret]) new Webhook(one).verify(both.body, both.headers);
    app.clock.advance(24 * HOUR);
    app.emit();
    const after = (await app.claim()).at(-1);
    assert.is(after?.headers['webhook-signature']?.split(' ').length, 1);
  },
);

deliveries(
  'rotate-in-flight: the attempt ends with the old secret, the next has the new',
  async () => {
    await using app = bootDeliveries();
    const { id, secret = '' } = await app.addWebhook();
    app.emit();
    const first = only(await app.claim());
    const rotated = await app.webhooks.rotateSecret({ id, revokeImmediately: true }, app.caller);
    new Webhook(secret).verify(first.body, first.headers);
    await app.report([[first, { status: 400, error: 'answered 400' }]]);
    app.clock.advance(5_000);
    const again = only(await app.claim());
    new Webhook(rotated.secret).verify(again.body, again.headers);
    assert.throws(() => new Webhook(secret).verify(again.body, again.headers));
  },
);

deliveries(
  'an expired lease interrupts the attempt, and another sender claims the delivery',
  async () => {
    await using app = bootDeliveries();
    await app.addWebhook();
    app.emit();
    const lost = only(await app.claim());
    const other = { senderId: 'two', instanceId: newId() };
    app.clock.advance(44_999);
    assert.equal(await app.claim(other), []);
    app.clock.advance(1);
    const again = only(await app.claim(other));
    assert.is(again.deliveryId, lost.deliveryId);
    assert.is(again.claimSeq, lost.claimSeq + 1);
    assert.equal(app.rows('SELECT n, outcome FROM attempts ORDER BY n'), [
      { n: 1, outcome: 'interrupted' },
      { n: 2, outcome: null },
    ]);
  },
);

deliveries(
  'a new instance of a sender takes over at once; another sender or an older instance does not',
  async () => {
    await using app = bootDeliveries();
    await app.addWebhook();
    const older = { senderId: 'one', instanceId: app.sender.instanceId };
    const newer = { senderId: 'one', instanceId: newId() };
    app.emit();
    only(await app.claim(older));
    assert.equal(await app.claim({ senderId: 'two', instanceId: newId() }), []);
    only(await app.claim(newer));
    assert.equal(await app.claim(older), []);
  },
);

deliveries(
  'one webhook has eight deliveries in flight at most, independent of others',
  async () => {
    await using app = bootDeliveries();
    const busy = await app.addWebhook('https://example.com/busy');
    for (let n = 0; n < 20; n += 1) app.emit();
    const quiet = await app.addWebhook('https://example.com/quiet');
    app.emit();
    const claims = await app.claim();
    const of = (id: string) => claims.filter(({ webhookId }) => webhookId === id).length;
    assert.equal([of(busy.id), of(quiet.id)], [8, 1]);
    assert.equal(await app.claim(), []);
    const first = must(
      claims.find(({ webhookId }) => webhookId === busy.id),
      'claim',
    );
    await app.report([[first, OK]]);
    only(await app.claim());
  },
);

deliveries('the webhook served least recently is served first', async () => {
  await using app = bootDeliveries();
  const [a, b] = [await app.addWebhook('https://a.com'), await app.addWebhook('https://b.com')];
  for (let n = 0; n < 3; n += 1) app.emit();
  const turns: string[] = [];
  for (let n = 0; n < 4; n += 1) turns.push(only(await app.claim(app.sender, 1)).webhookId);
  assert.equal(turns, [a.id, b.id, a.id, b.id]);
});

deliveries('a delivery with an unreadable secret is not claimed, and delays no other', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook('https://example.com/1');
  const fine = await app.addWebhook('https://example.com/2');
  app.db.prepare(`UPDATE webhook_secrets SET sealed = x'00' WHERE webhook_id = ?`).run(id);
  app.emit();
  assert.is(only(await app.claim()).webhookId, fine.id);
});

deliveries('a waiting claim returns at the first event', async () => {
  const took: number[] = [];
  // the fastest of several: under load one may be late, and without a wake-up all are
  for (let n = 0; n < 5 && !took.some((ms) => ms < 900); n += 1) {
    await using app = bootDeliveries();
    await app.addWebhook();
    const waiting = app.claim(app.sender, 64, 5_000);
    const startedAt = performance.now();
    await app.claim();
    app.emit();
    only(await waiting);
    took.push(performance.now() - startedAt);
  }
  assert.ok(Math.min(...took) < 900, `sooner than it looks by itself: ${took}`);
});

deliveries('a sender that disconnects while waiting receives no claim', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  const leaving = new AbortController();
  const call = { ...app.caller.call, signal: leaving.signal };
  const request = { ...app.sender, max: 1, waitMs: 5_000 };
  const waiting = app.service.claimDeliveries(request, { call });
  await app.claim();
  leaving.abort();
  assert.equal((await waiting).claims, []);
  app.emit();
  only(await app.claim());
});

for (const [what, request] of [
  ['no name', { senderId: '' }],
  ['an instance that is no UUID', { instanceId: 'x' }],
  ['65 at once', { max: 65 }],
  ['a longer wait', { waitMs: 5_001 }],
] as const) {
  deliveries(`a claim with ${what} is refused`, async () => {
    await using app = bootDeliveries();
    const asked = { ...app.sender, max: 1, waitMs: 0, ...request };
    assert.is(
      (await faultOf(app.service.claimDeliveries(asked, app.caller))).reason,
      'INVALID_FIELD',
    );
  });
}

deliveries('deliveries claimed while their sender disconnects are due at once', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  app.emit();
  const call = { ...app.caller.call, signal: AbortSignal.abort(new Error('left')) };
  const wanted = { ...app.sender, max: 64, waitMs: 0 };
  await app.service.claimDeliveries(wanted, { call }).catch(() => undefined);
  assert.equal(app.rows('SELECT id FROM attempts'), [], 'nothing was sent');
  only(await app.claim());
});

deliveries.run();
