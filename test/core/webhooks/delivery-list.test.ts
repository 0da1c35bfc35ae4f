/** Deliveries as people see them. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import type { ListDeliveriesRequest } from '../../../proto/gen/tabern/v1/webhooks.pb.ts';
import { callerOf } from '../../support/core/bare-store.ts';
import { bootDeliveries, OK, only, TYPE } from '../../support/core/deliveries.ts';
import { faultOf } from '../../support/fault.ts';

const views = suite('core/webhooks/delivery-list');
type App = ReturnType<typeof bootDeliveries>;

function list(app: App, id: string, filters: Partial<ListDeliveriesRequest> = {}) {
  const none = { status: undefined, eventType: undefined, resourceId: undefined };
  const wanted = { id, ...none, limit: undefined, cursor: undefined, ...filters };
  return app.webhooks.listDeliveries(wanted, app.caller);
}

const resources = async (answer: ReturnType<typeof list>) =>
  (await answer).data.map(({ resourceId }) => resourceId);

views('pages run from the newest to the oldest, each delivery once', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook();
  for (let n = 0; n < 5; n += 1) app.emit({}, `r${n}`);
  const first = await list(app, id, { limit: 2 });
  assert.equal(
    first.data.map(({ resourceId }) => resourceId),
    ['r4', 'r3'],
  );
  assert.is(first.limit, 2);
  const second = await list(app, id, { limit: 2, cursor: String(first.nextCursor) });
  const last = await list(app, id, { limit: 2, cursor: String(second.nextCursor) });
  assert.equal(
    [...second.data, ...last.data].map(({ resourceId }) => resourceId),
    ['r2', 'r1', 'r0'],
  );
  assert.is(last.nextCursor, null);
});

views('filters select matching deliveries only', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook();
  app.emit({}, 'done');
  app.emit({}, 'waits');
  await app.webhooks.sendTest({ id }, app.caller);
  const claims = await app.claim();
  await app.report([[must(claims[0], 'claim'), OK]]);
  assert.equal(await resources(list(app, id, { status: 'DELIVERED' })), ['done']);
  assert.equal(await resources(list(app, id, { status: 'IN_FLIGHT' })), [id, 'waits']);
  assert.equal(await resources(list(app, id, { status: 'SKIPPED' })), []);
  assert.equal(await resources(list(app, id, { eventType: TYPE })), ['waits', 'done']);
  assert.equal(await resources(list(app, id, { eventType: 'webhooks.test' })), [id]);
  assert.equal(await resources(list(app, id, { resourceId: 'waits' })), ['waits']);
  assert.equal(await resources(list(app, id, { resourceId: 'waits', status: 'DELIVERED' })), []);
  const mixed = { resourceId: 'done', status: 'DELIVERED', eventType: TYPE } as const;
  assert.equal(await resources(list(app, id, mixed)), ['done']);
});

views("a page has this webhook's deliveries, not another's", async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook('https://example.com/1');
  app.emit({}, 'mine');
  const other = await app.addWebhook('https://example.com/2');
  assert.equal(await resources(list(app, other.id)), []);
  assert.equal(await resources(list(app, other.id, { resourceId: 'mine' })), []);
  const cursor = String(app.rows('SELECT id FROM events')[0]?.['id']);
  assert.is((await faultOf(list(app, other.id, { cursor }))).reason, 'INVALID_CURSOR');
  assert.equal(await resources(list(app, id)), ['mine']);
  const foreign = { ...app, caller: callerOf(newId()) };
  assert.is((await faultOf(list(foreign, id))).row.http, 404);
});

for (const [what, filters, reason] of [
  ['a cursor of nothing', { cursor: newId() }, 'INVALID_CURSOR'],
  ['a cursor that is no id', { cursor: 'x' }, 'INVALID_CURSOR'],
  ['101 at once', { limit: 101 }, 'INVALID_FIELD'],
  ['none', { limit: 0 }, 'INVALID_FIELD'],
] as const) {
  views(`a page with ${what} is refused`, async () => {
    await using app = bootDeliveries();
    const { id } = await app.addWebhook();
    assert.is((await faultOf(list(app, id, filters))).reason, reason);
  });
}

views('a delivery shows its attempts, and the response without control characters', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook();
  app.emit({}, 'resource');
  const response = Buffer.concat([Buffer.from('o\u001b[31mops\r\n\u0085ü'), Buffer.from([0xff])]);
  const startedAt = app.clock.now();
  await app.report([[only(await app.claim()), { response }]]);
  app.clock.advance(5_000);
  await app.claim();
  const deliveryId = String(app.rows('SELECT id FROM events')[0]?.['id']);
  const { delivery } = await app.webhooks.getDelivery({ id, deliveryId }, app.caller);
  const { attempts, ...shown } = must(delivery, 'delivery');
  assert.equal(shown, {
    id: deliveryId,
    webhookId: id,
    eventType: TYPE,
    resourceId: 'resource',
    tries: 1,
    status: 'IN_FLIGHT',
    reason: undefined,
    createdAt: new Date(startedAt),
    nextAttemptAt: undefined,
    endedAt: undefined,
  });
  const [first, second] = attempts;
  assert.equal(first, {
    number: 1,
    trigger: 'event',
    endpoint: 'https://example.com/',
    outcome: 'http',
    startedAt: new Date(startedAt),
    endedAt: new Date(startedAt),
    statusCode: 500,
    latencyMs: 12,
    error: 'answered 500',
    response: 'o[31mopsü\ufffd',
  });
  assert.equal([second?.number, second?.trigger, second?.outcome], [2, 'retry', undefined]);
});

views('a delivery is found by its own webhook and project only', async () => {
  await using app = bootDeliveries();
  const { id } = await app.addWebhook('https://example.com/1');
  app.emit();
  const other = await app.addWebhook('https://example.com/2');
  const deliveryId = String(app.rows('SELECT id FROM events')[0]?.['id']);
  const read = (webhookId: string, wanted = deliveryId, caller = app.caller) =>
    app.webhooks.getDelivery({ id: webhookId, deliveryId: wanted }, caller);
  await read(id);
  assert.is((await faultOf(read(other.id))).row.http, 404);
  assert.is((await faultOf(read(id, newId()))).row.http, 404);
  assert.is((await faultOf(read(id, 'x'))).row.http, 400);
  assert.is((await faultOf(read(id, deliveryId, callerOf(newId())))).row.http, 404);
});

views.run();
