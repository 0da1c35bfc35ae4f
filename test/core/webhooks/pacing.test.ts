/** The pacing of claims, and deleted webhooks in answers: proto/spec/webhooks.md 9, 10. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { sealerOf } from '../../../core/common/sealer.ts';
import { deliveryService } from '../../../core/webhooks/deliveries.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { callerOf } from '../../support/core/bare-store.ts';
import { bootDeliveries, HOUR, OK, only, REST, TYPE } from '../../support/core/deliveries.ts';
import { faultOf } from '../../support/fault.ts';

const pacing = suite('core/webhooks/pacing');

pacing('a sender receives the deletion of its webhook at once, and once', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook();
  app.emit();
  const other = { senderId: 'two', instanceId: newId() };
  const held = only(await app.claim());
  const ask = (from: typeof other, waitMs: number) =>
    app.service.claimDeliveries({ ...from, max: 1, waitMs }, app.caller);
  const waiting = ask(app.sender, 5_000);
  await app.webhooks.getWebhook({ id }, app.caller);
  await app.webhooks.deleteWebhook({ id }, app.caller);
  assert.equal((await ask(other, 0)).goneWebhookIds, [], 'it holds nothing');
  assert.equal(await waiting, { claims: [], goneWebhookIds: [id] });
  assert.equal((await ask(app.sender, 0)).goneWebhookIds, []);
  await app.report([[held, { outcome: 'RESET', status: 0 }]]);
  assert.is(app.states()[0]?.['state'], 'cancelled');
});

pacing('a sender without a free slot receives a deletion at once, and no claim', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook();
  app.emit();
  only(await app.claim());
  const ask = () =>
    app.service.claimDeliveries({ ...app.sender, max: 0, waitMs: 5_000 }, app.caller);
  const [deleted] = await Promise.all([ask(), app.webhooks.deleteWebhook({ id }, app.caller)]);
  assert.equal(deleted, { claims: [], goneWebhookIds: [id] });
  await app.addWebhook('https://example.com/other');
  // A delivery is due, and there may be room for it: the call returns, so that the sender claims.
  const waiting = ask();
  await app.webhooks.getWebhook({ id }, app.caller).catch(() => undefined);
  app.emit();
  assert.equal(await waiting, { claims: [], goneWebhookIds: [] });
  assert.is(app.states()[1]?.['state'], 'pending');
});

pacing('the answer to a report contains deleted webhooks, too', async () => {
  await using app = bootDeliveries();
  const gone = await app.addWebhook('https://example.com/gone');
  const stays = await app.addWebhook('https://example.com/stays');
  app.emit();
  const claims = await app.claim();
  await app.webhooks.deleteWebhook({ id: gone.id }, app.caller);
  const ended = must(
    claims.find(({ webhookId }) => webhookId === stays.id),
    'claim',
  );
  assert.equal(await app.report([[ended, OK]]), { claims: [], goneWebhookIds: [gone.id] });
});

pacing('a report claims due deliveries, and no more than requested', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  for (let n = 0; n < 4; n += 1) app.emit();
  const [first, ...others] = await app.claim(app.sender, 2);
  const asked = { ...app.sender, max: 65, reports: [] };
  assert.is((await faultOf(app.service.reportAttempts(asked, app.caller))).reason, 'INVALID_FIELD');
  const { claims } = await app.report([[must(first, 'claim'), OK]], app.sender, 1);
  assert.is(claims.length, 1);
  assert.ok(claims[0]?.headers['webhook-signature']);
  assert.equal(
    app.states().map(({ state }) => state),
    ['delivered', 'in_flight', 'in_flight', 'pending'],
  );
  await app.report([...others, ...claims].map((claim) => [claim, OK]));
  assert.is(app.states()[3]?.['state'], 'pending', 'nothing was asked for');
});

pacing('deliveries claimed by the report of a disconnected sender are due at once', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  app.emit();
  const call = { ...app.caller.call, signal: AbortSignal.abort(new Error('left')) };
  const request = { ...app.sender, max: 64, reports: [] };
  assert.equal((await app.service.reportAttempts(request, { call })).claims, []);
  assert.equal(app.rows('SELECT id FROM attempts'), [], 'nothing was sent');
  only(await app.claim());
});

pacing('a deletion is not reported when its attempt has ended', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook();
  app.emit();
  const held = only(await app.claim());
  await app.webhooks.deleteWebhook({ id }, app.caller);
  await app.report([[held, OK]]);
  const request = { ...app.sender, max: 1, waitMs: 0 };
  assert.equal((await app.service.claimDeliveries(request, app.caller)).goneWebhookIds, []);
});

pacing('a project has 32 in flight at most; another project is served beside it', async () => {
  await using app = bootDeliveries();
  for (let n = 0; n < 6; n += 1) await app.addWebhook(`https://example.com/${n}`);
  for (let n = 0; n < 10; n += 1) app.emit();
  const claims = await app.claim();
  assert.is(claims.length, 32);
  assert.equal(await app.claim(), []);
  const at = app.clock.now();
  const other = await app.store.ensureProject({
    id: newId(),
    name: 'other',
    defaultTimeout: 900,
    concurrency: 1,
    createdAt: at,
    updatedAt: at,
  });
  const wanted = { endpoint: 'https://example.com/other', eventTypes: [TYPE] };
  const { webhook } = await app.webhooks.createWebhook(wanted, callerOf(other.id));
  app.bare.emit({ type: TYPE, resourceId: newId(), projectId: other.id, data: {}, at });
  assert.is(only(await app.claim()).webhookId, webhook?.id);
});

pacing('a webhook receives 50 deliveries a second, however fast it responds', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  for (let n = 0; n < 120; n += 1) app.emit();
  const drain = async () => {
    let sent = 0;
    for (let claims = await app.claim(); claims.length > 0; claims = await app.claim()) {
      await app.report(claims.map((claim) => [claim, OK]));
      sent += claims.length;
    }
    return sent;
  };
  assert.is(await drain(), 50);
  app.clock.advance(500);
  assert.is(await drain(), 25);
  const { nextDue } = await app.store.claimDeliveries({
    ...app.sender,
    max: 1,
    perProjectMax: 32,
    ratePerS: 50,
    jitter: 1,
    at: app.clock.now(),
    signedAtS: 0,
    leaseUntil: app.clock.now() + 1,
  });
  assert.is(nextDue, app.clock.now() + 20, 'who waits looks again when one may go');
});

pacing('an open breaker allows one probe; its success releases all deliveries', async () => {
  await using app = bootDeliveries();
  await app.addWebhook();
  for (let n = 0; n < 40; n += 1) app.emit();
  for (let failed = 0; failed < 20; failed += 1) {
    const claim = only(await app.claim(app.sender, 1));
    await app.report([[claim, {}]]);
  }
  assert.equal(await app.claim(), [], 'it waits');
  app.clock.advance(1_000);
  const probe = only(await app.claim());
  assert.equal(await app.claim(), [], 'one at a time');
  assert.is(app.rows(`SELECT id FROM deliveries WHERE tries > 1`).length, 0, 'waiting is no try');
  await app.report([[probe, OK]]);
  assert.is((await app.claim()).length, 8);
});

pacing('a rule of one hour disables after one hour, and logs it', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook();
  const log = openLog({ role: 'test', level: 'silent' });
  const lines: unknown[] = [];
  log.warn = ((facts: unknown) => void lines.push(facts)) as typeof log.warn;
  const sealer = sealerOf(Buffer.alloc(32, 1));
  const rule = { disableAfterMs: HOUR, silence: true };
  const { now } = app.clock;
  const service = deliveryService({ ...REST, store: app.store, sealer, log, now, wall: now, rule });
  for (let n = 0; n < 2; n += 1) {
    app.emit();
    const claims = await app.claim();
    const reports = claims.slice(-1).map(({ deliveryId, claimSeq, attemptId }) => ({
      deliveryId,
      claimSeq,
      attemptId,
      outcome: 'CONNECT' as const,
      status: 0,
      latencyMs: 1,
      error: 'no',
      response: Buffer.alloc(0),
      retryAfterSeconds: undefined,
      abortMessage: false,
    }));
    assert.equal(lines, []);
    await service.reportAttempts({ ...app.sender, reports, max: 0 }, app.caller);
    app.clock.advance(HOUR);
  }
  assert.equal(lines, [{ webhookId: id, reason: 'failing_5d', hours: 1 }]);
  assert.is(app.rows('SELECT status FROM webhooks')[0]?.['status'], 'disabled');
});

pacing.run();
