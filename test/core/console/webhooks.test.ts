/**
 * Webhooks of the console: the counts of their days, a delivery as it was sent, and why a receiver
 * refuses a request.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { consoleService } from '../../../core/console/console.ts';
import { signatureHeaders } from '../../../core/delivery/sign.ts';
import { must } from '../../../proto/common/must.ts';
import type { Claim } from '../../../proto/gen/tabern/v1/deliveries.pb.ts';
import { callerOf } from '../../support/core/bare-store.ts';
import { bootDeliveries, HOUR, OK, only } from '../../support/core/deliveries.ts';
import { faultOf } from '../../support/fault.ts';
import { SERVICE } from './projects.ts';

const test = suite('core/console/webhooks');

const DAY = 24 * HOUR;

function open() {
  const app = bootDeliveries();
  const { signal: closing } = new AbortController();
  const wall = app.clock.now;
  const isRevoked = async () => false;
  const service = consoleService({ ...SERVICE, ...app, ...app.parts, wall, isRevoked, closing });
  const healthOf = async (webhookId: string) =>
    must((await service.listWebhookHealth({ webhookId }, app.caller)).webhooks[0], 'health');
  const today = async (webhookId: string) => {
    const { delivered, failed, lost } = must((await healthOf(webhookId)).days.at(-1), 'today');
    return { delivered, failed, lost };
  };
  return { ...app, console: service, healthOf, today };
}

/** A receiver's copy of what a claim sends. */
function requestOf(id: string, { headers, body }: Claim) {
  return {
    id,
    webhookId: headers['webhook-id'] ?? '',
    webhookTimestamp: headers['webhook-timestamp'] ?? '',
    webhookSignature: headers['webhook-signature'] ?? '',
    body: body.toString(),
  };
}

function headersOf(attempt: { headers: { name: string; value: string }[] } | undefined) {
  const { headers } = must(attempt, 'attempt');
  return Object.fromEntries(headers.map(({ name, value }) => [name, value]));
}

test('a day counts what was delivered, what failed and what was lost, without tests', async () => {
  await using app = open();
  const { id } = await app.addWebhook();
  app.emit();
  await app.report([[only(await app.claim()), {}]]);
  app.clock.advance(5_000);
  await app.report([[only(await app.claim()), { ...OK, latencyMs: 80 }]]);
  await app.webhooks.sendTest({ id }, app.caller);
  await app.report([[only(await app.claim()), OK]]);
  assert.equal(await app.today(id), { delivered: 1, failed: 1, lost: 0 });
  app.emit();
  await app.report([[only(await app.claim()), { abortMessage: true }]]);
  assert.equal(await app.today(id), { delivered: 1, failed: 2, lost: 1 });
  const { answers, p95Ms, backlog, days } = await app.healthOf(id);
  assert.equal([answers, p95Ms, backlog, days.length], [3, 100, 0, 14]);
  app.clock.advance(DAY);
  assert.equal(await app.today(id), { delivered: 0, failed: 0, lost: 0 });
  assert.is((await app.healthOf(id)).days.at(-2)?.failed, 2);
  app.clock.advance(13 * DAY);
  assert.is((await app.healthOf(id)).answers, 0);
});

test('deliveries that a disabled webhook skips are lost, at once and later', async () => {
  await using app = open();
  const { id } = await app.addWebhook();
  app.emit();
  const claim = only(await app.claim());
  app.emit();
  const rule = { disableAfterMs: 0, silence: false };
  const { deliveryId, claimSeq, attemptId } = claim;
  const end = { outcome: 'http' as const, status: 500, latencyMs: 1, error: 'x', jitter: 1 };
  const rest = { response: Buffer.alloc(0), retryAfterS: null, abortMessage: false };
  const ends = [{ deliveryId, claimSeq, attemptId, ...end, ...rest }];
  const { disabled } = await app.store.reportAttempts({ ends, at: app.clock.now(), rule });
  assert.equal(disabled, [id]);
  assert.equal(await app.today(id), { delivered: 0, failed: 1, lost: 2 });
  app.emit();
  assert.equal(await app.today(id), { delivered: 0, failed: 1, lost: 3 });
});

test('the backlog is counted up to a limit, and counts of another time are not shown', async () => {
  await using app = open();
  const { id } = await app.addWebhook();
  const other = await app.addWebhook('https://other.example/');
  for (let n = 0; n < 1_001; n += 1) app.emit();
  const all = (await app.console.listWebhookHealth({ webhookId: undefined }, app.caller)).webhooks;
  assert.equal(
    all.map(({ webhookId }) => webhookId),
    [other.id, id],
  );
  assert.equal([all[1]?.backlog, all[1]?.hasLargerBacklog], [1_000, true]);
  const one = await app.healthOf(id);
  assert.equal([one.backlog, one.hasLargerBacklog], [1_001, false]);
  assert.is(Number(one.countedFrom), app.clock.now());
  app.clock.advance(20 * DAY);
  assert.is((await app.healthOf(id)).countedFrom, undefined);
});

test('days are kept as long as deliveries, and leave with their webhook', async () => {
  await using app = open();
  const { id } = await app.addWebhook();
  const count = () => app.rows('SELECT COUNT(*) AS count FROM webhook_days')[0]?.['count'];
  for (let day = 0; day < 40; day += 1) {
    app.emit();
    await app.report([[only(await app.claim()), OK]]);
    app.clock.advance(DAY);
  }
  assert.is(count(), 31);
  await app.webhooks.deleteWebhook({ id }, app.caller);
  const at = app.clock.now() + 40 * DAY;
  for (let left = 1; left > 0; ) {
    left = await app.store.purgeEvents({ before: at - DAY, at, max: 20 });
  }
  assert.is(count(), 0);
  assert.equal(app.rows('SELECT id FROM webhooks'), []);
});

test('a delivery has the body that is sent, and each attempt with its headers', async () => {
  await using app = open();
  const { id } = await app.addWebhook();
  app.emit({ results: '<b>ü</b>' });
  const first = only(await app.claim());
  const response = Buffer.from('line one\nline\u0000 two\xff');
  await app.report([[first, { response: Buffer.concat([response, Buffer.from([0xff])]) }]]);
  app.clock.advance(5_000);
  const second = only(await app.claim());
  const read = () =>
    app.console.getDelivery({ id, deliveryId: first.headers['webhook-id'] ?? '' }, app.caller);
  const { delivery, body, attempts } = await read();
  assert.is(body, first.body.toString());
  assert.is(delivery?.status, 'IN_FLIGHT');
  assert.equal(
    attempts.map(({ attempt }) => [attempt?.number, attempt?.outcome, attempt?.statusCode]),
    [
      [2, undefined, undefined],
      [1, 'http', 500],
    ],
  );
  assert.equal(headersOf(attempts[0]), second.headers);
  assert.equal(headersOf(attempts[1]), first.headers);
  assert.is(attempts[1]?.attempt?.response, 'line one\nline two\u00ff\ufffd');
  assert.is(attempts[1]?.isResponseCut, false);
  await app.report([[second, { response: Buffer.alloc(9_000, 'x') }]]);
  const [cut] = (await read()).attempts;
  assert.equal([cut?.attempt?.response?.length, cut?.isResponseCut], [4_096, true]);
});

test('the signature of an attempt is shown until one of its secrets is removed', async () => {
  await using app = open();
  const { id } = await app.addWebhook();
  await app.webhooks.rotateSecret({ id, revokeImmediately: false }, app.caller);
  app.emit();
  const claim = only(await app.claim());
  assert.is(claim.headers['webhook-signature']?.split(' ').length, 2);
  const read = async () => {
    const deliveryId = claim.headers['webhook-id'] ?? '';
    const { attempts } = await app.console.getDelivery({ id, deliveryId }, app.caller);
    return headersOf(attempts[0]);
  };
  assert.equal(await read(), claim.headers);
  app.clock.advance(25 * HOUR);
  assert.equal(await read(), claim.headers);
  await app.webhooks.rotateSecret({ id, revokeImmediately: false }, app.caller);
  const { 'webhook-signature': _, ...rest } = claim.headers;
  assert.equal(await read(), rest);
});

test('a delivery that was sent again often has its newest attempts', async () => {
  await using app = open();
  const { id } = await app.addWebhook();
  app.emit();
  let deliveryId = '';
  for (let n = 0; n < 60; n += 1) {
    const claim = only(await app.claim());
    deliveryId = claim.headers['webhook-id'] ?? '';
    await app.report([[claim, OK]]);
    await app.webhooks.replayDelivery({ id, deliveryId }, app.caller);
    app.clock.advance(1_000);
  }
  const { attempts } = await app.console.getDelivery({ id, deliveryId }, app.caller);
  assert.is(attempts.length, 50);
  assert.equal([attempts[0]?.attempt?.number, attempts.at(-1)?.attempt?.number], [60, 11]);
});

test('a request that was sent is accepted, with either secret of a rotation', async () => {
  await using app = open();
  const { id, createdAt } = await app.addWebhook();
  app.emit();
  const claim = only(await app.claim());
  const verify = (change: object) =>
    app.console.verifyWebhookSignature({ ...requestOf(id, claim), ...change }, app.caller);
  const sent = await verify({});
  assert.equal([sent.isAccepted, sent.isSigned, sent.findings], [true, true, []]);
  assert.equal([sent.secretCreatedAt, sent.secretExpiresAt], [createdAt, undefined]);
  app.clock.advance(1_000);
  await app.webhooks.rotateSecret({ id, revokeImmediately: false }, app.caller);
  const old = await verify({});
  assert.is(old.isAccepted, true);
  assert.is(Number(old.secretExpiresAt), app.clock.now() + 24 * HOUR);
  const spaced = await verify({
    webhookSignature: ` v1a,xx  ${requestOf(id, claim).webhookSignature} `,
  });
  assert.is(spaced.isAccepted, true);
  app.clock.advance(24 * HOUR);
  const codes = (await verify({})).findings.map(({ code }) => code);
  assert.equal(codes, ['SECRET_ENDED', 'TIMESTAMP_OLD']);
});

test('what is wrong with a request is named', async () => {
  await using app = open();
  const { id } = await app.addWebhook();
  const other = await app.addWebhook('https://other.example/');
  app.emit({ results: 1 });
  const [claim, theirs] = await app.claim();
  assert.ok(claim && theirs);
  const own = claim.webhookId === id ? claim : theirs;
  const foreign = claim.webhookId === id ? theirs : claim;
  const real = requestOf(id, own);
  const key = Buffer.alloc(24, 7);
  const stranger = signatureHeaders({ id: real.webhookId, timestampS: 1, body: own.body }, [key]);
  const codesOf = async (change: object) => {
    const found = await app.console.verifyWebhookSignature({ ...real, ...change }, app.caller);
    assert.is(found.isAccepted, false);
    return found.findings.map(({ code }) => code);
  };
  const cases: [object, string[]][] = [
    [{ body: `${real.body}\n` }, ['BODY_SPACES']],
    [{ body: real.body.replace('"results":1', '"results":2') }, ['BODY_DIFFERS']],
    [{ body: JSON.stringify(JSON.parse(real.body), null, 2) }, ['BODY_DIFFERS']],
    [{ body: '' }, ['BODY_DIFFERS']],
    [{ webhookId: newId() }, ['ID_DIFFERS']],
    [{ webhookTimestamp: String(Number(real.webhookTimestamp) + 1) }, ['TIMESTAMP_DIFFERS']],
    [{ webhookTimestamp: '1' }, ['TIMESTAMP_DIFFERS', 'TIMESTAMP_OLD']],
    [{ webhookTimestamp: 'today' }, ['TIMESTAMP_FORMAT']],
    [{ webhookSignature: 'v1,short' }, ['SIGNATURE_FORMAT']],
    [{ webhookSignature: real.webhookSignature.replace('v1,', 'v2,') }, ['SIGNATURE_FORMAT']],
    [{ webhookSignature: requestOf(id, foreign).webhookSignature }, ['OTHER_WEBHOOK']],
    [{ webhookSignature: stranger['webhook-signature'] }, ['SIGNATURE_UNKNOWN', 'BODY_SAME']],
    [
      { webhookSignature: stranger['webhook-signature'], webhookId: 'msg_1', body: '{}' },
      ['SIGNATURE_UNKNOWN', 'EVENT_UNKNOWN'],
    ],
  ];
  for (const [change, codes] of cases) {
    assert.equal(await codesOf(change), codes, JSON.stringify(change).slice(0, 120));
  }
  const named = await app.console.verifyWebhookSignature(
    { ...real, webhookSignature: requestOf(id, foreign).webhookSignature },
    app.caller,
  );
  assert.match(named.findings[0]?.message ?? '', other.endpoint);
  app.clock.advance(301_000);
  assert.equal(await codesOf({}), ['TIMESTAMP_OLD']);
  app.clock.set(app.clock.now() - 603_000);
  assert.equal(await codesOf({}), ['TIMESTAMP_AHEAD']);
});

test('a check is refused beyond its limits, and names the field', async () => {
  await using app = open();
  const { id } = await app.addWebhook();
  app.emit();
  const real = requestOf(id, only(await app.claim()));
  const cases: [object, string][] = [
    [{ webhookId: ' ' }, 'webhookId'],
    [{ webhookId: 'x'.repeat(257) }, 'webhookId'],
    [{ webhookTimestamp: '' }, 'webhookTimestamp'],
    [{ webhookTimestamp: '1'.repeat(65) }, 'webhookTimestamp'],
    [{ webhookSignature: '' }, 'webhookSignature'],
    [{ webhookSignature: 'x'.repeat(4_097) }, 'webhookSignature'],
    [{ body: 'ü'.repeat(10_241) }, 'body'],
    [{ id: 'x' }, 'id'],
  ];
  for (const [change, field] of cases) {
    const check = app.console.verifyWebhookSignature({ ...real, ...change }, app.caller);
    assert.is((await faultOf(check)).facts['field'], field);
  }
  const large = await app.console.verifyWebhookSignature(
    { ...real, body: 'x'.repeat(20_480) },
    app.caller,
  );
  assert.is(large.isSigned, false);
});

test("another project's webhook and delivery do not exist", async () => {
  await using app = open();
  const { id } = await app.addWebhook();
  app.emit();
  const claim = only(await app.claim());
  const theirs = callerOf(newId());
  const deliveryId = claim.headers['webhook-id'] ?? '';
  assert.equal(await app.console.listWebhookHealth({ webhookId: id }, theirs), { webhooks: [] });
  assert.equal(await app.console.listWebhookHealth({ webhookId: undefined }, theirs), {
    webhooks: [],
  });
  for (const call of [
    app.console.getDelivery({ id, deliveryId }, theirs),
    app.console.verifyWebhookSignature(requestOf(id, claim), theirs),
    app.console.getDelivery({ id, deliveryId: newId() }, app.caller),
    app.console.getDelivery({ id: newId(), deliveryId }, app.caller),
  ]) {
    assert.is((await faultOf(call)).reason, 'RESOURCE_NOT_FOUND');
  }
});

test('checks have a rate limit per project', async () => {
  await using app = open();
  const { id } = await app.addWebhook();
  app.emit();
  const sent = requestOf(id, only(await app.claim()));
  const check = () => app.console.verifyWebhookSignature(sent, app.caller);
  for (let count = 0; count < 120; count += 1) await check();
  assert.is((await faultOf(check())).reason, 'RATE_LIMIT');
  const other = app.console.verifyWebhookSignature(sent, callerOf(newId()));
  assert.is((await faultOf(other)).reason, 'RESOURCE_NOT_FOUND');
  app.clock.advance(60_000);
  assert.is((await check()).isSigned, true);
});

test.run();
