/** Webhooks: proto/spec/webhooks.md 8, 10, 11. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { sealerOf } from '../../../core/common/sealer.ts';
import { EVENT_TYPES, secretData, webhookService } from '../../../core/webhooks/webhooks.ts';
import { cidrList } from '../../../proto/network/public-addresses.ts';
import { testClock } from '../../support/clock.ts';
import { bareStore, callerOf } from '../../support/core/bare-store.ts';
import { faultOf } from '../../support/fault.ts';

const webhooks = suite('core/webhooks/webhooks');
const HOUR = 3_600_000;
const [TYPE, OTHER] = ['functions.invocations.completed', 'functions.invocations.failed'] as const;

function boot(allow: string[] = []) {
  const bare = bareStore();
  const clock = testClock();
  const sealer = sealerOf(Buffer.alloc(32, 1));
  const { store, projectId } = bare;
  const closing = new AbortController().signal;
  const parts = { store, sealer, now: clock.now, closing };
  const service = webhookService({ ...parts, allow: cidrList(allow) });
  const caller = callerOf(projectId);
  const create = async (endpoint = 'https://example.com/hook', eventTypes: string[] = [TYPE]) => {
    const { webhook } = await service.createWebhook({ endpoint, eventTypes }, caller);
    if (!webhook) throw new Error('no webhook');
    return webhook;
  };
  const emit = (type: string) =>
    bare.emit({ type, resourceId: newId(), projectId, data: {}, at: clock.now() });
  const dispose = () => bare[Symbol.asyncDispose]();
  return { ...bare, clock, sealer, service, caller, create, emit, [Symbol.asyncDispose]: dispose };
}

webhooks('secret-never-returned: only creation returns the secret', async () => {
  await using app = boot();
  const made = await app.create('https://example.com/hook', [OTHER, TYPE, TYPE]);
  assert.match(made.secret ?? '', /^whsec_[A-Za-z0-9+/]{32}$/);
  assert.equal(made.eventTypes, [TYPE, OTHER]);
  assert.is(made.status, 'ENABLED');
  const { id } = made;
  const answers = [
    await app.service.getWebhook({ id }, app.caller),
    await app.service.listWebhooks({ limit: undefined, cursor: undefined }, app.caller),
    await app.service.updateWebhook({ id, endpoint: undefined, eventTypes: [OTHER] }, app.caller),
  ];
  answers.push(await app.service.enableWebhook({ id }, app.caller));
  for (const answer of answers) assert.not.match(JSON.stringify(answer), /secret|whsec/);
});

webhooks('the secret is stored sealed', async () => {
  await using app = boot();
  const { id, secret = '' } = await app.create();
  const [row] = app.rows('SELECT sealed FROM webhook_secrets WHERE webhook_id = ?', id);
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const sealed = row?.['sealed'] as Buffer;
  assert.is(sealed.includes(key), false);
  assert.equal(app.sealer.open(sealed, secretData(id, 1)), key);
});

webhooks('every event type of the catalogue is accepted', async () => {
  await using app = boot();
  assert.equal((await app.create('https://example.com', [...EVENT_TYPES])).eventTypes.length, 15);
});

for (const [what, eventTypes] of [
  ['an unknown type', ['functions.builds.pending']],
  ['no type', []],
] as const) {
  webhooks(`unknown-type-400: ${what} is refused, and creates no webhook`, async () => {
    await using app = boot();
    const fault = await faultOf(app.create('https://example.com', [...eventTypes]));
    assert.is(fault.reason, 'UNKNOWN_EVENT_TYPE');
    assert.is(fault.row.http, 400);
    assert.equal(app.rows('SELECT id FROM webhooks'), []);
  });
}

webhooks('a private endpoint is refused unless the operator allows it', async () => {
  await using app = boot();
  const fault = await faultOf(app.create('https://127.0.0.1:8443/'));
  assert.is(fault.reason, 'ENDPOINT_NOT_ALLOWED');
  await using own = boot(['127.0.0.0/8']);
  await own.create('https://127.0.0.1:8443/');
});

webhooks('duplicate-url-409: an endpoint is registered once, until it is deleted', async () => {
  await using app = boot();
  const { id } = await app.create('https://example.com');
  const fault = await faultOf(app.create('https://EXAMPLE.com:443/'));
  assert.is(fault.reason, 'ENDPOINT_EXISTS');
  assert.is(fault.row.http, 409);
  await app.service.deleteWebhook({ id }, app.caller);
  assert.is.not((await app.create('https://example.com')).id, id);
});

webhooks('a project has 100 webhooks at most', async () => {
  await using app = boot();
  for (let n = 0; n < 100; n += 1) await app.create(`https://example.com/${n}`);
  assert.is((await faultOf(app.create('https://example.com/100'))).reason, 'TOO_MANY_WEBHOOKS');
});

webhooks('an update replaces the given members and keeps the secret', async () => {
  await using app = boot();
  const { id } = await app.create();
  const before = app.rows('SELECT sealed FROM webhook_secrets');
  app.clock.advance(1_000);
  const change = { id, endpoint: 'https://example.org/new', eventTypes: [] };
  const { webhook } = await app.service.updateWebhook(change, app.caller);
  assert.is(webhook?.endpoint, 'https://example.org/new');
  assert.equal(webhook?.eventTypes, [TYPE]);
  assert.is(webhook?.updatedAt?.getTime(), app.clock.now());
  assert.equal(app.rows('SELECT sealed FROM webhook_secrets'), before);
  await app.create();
  const nothing = { id, endpoint: undefined, eventTypes: [] };
  assert.is(
    (await faultOf(app.service.updateWebhook(nothing, app.caller))).reason,
    'INVALID_FIELD',
  );
});

webhooks("an update to another webhook's endpoint is refused, to its own is not", async () => {
  await using app = boot();
  const { id } = await app.create('https://example.com/1');
  await app.create('https://example.com/2');
  const to = (endpoint: string) =>
    app.service.updateWebhook({ id, endpoint, eventTypes: [] }, app.caller);
  assert.is((await faultOf(to('https://example.com/2'))).reason, 'ENDPOINT_EXISTS');
  await to('https://example.com/1');
});

webhooks('a new endpoint enables a disabled webhook', async () => {
  await using app = boot();
  const { id } = await app.create();
  app.db.exec(`UPDATE webhooks SET status = 'disabled', disabled_at = 1,
    disabled_reason = 'failing_5d', first_failure_at = 1, consecutive_failures = 9`);
  const failing = await app.service.getWebhook({ id }, app.caller);
  assert.is(failing.webhook?.status, 'DISABLED');
  assert.is(failing.webhook?.disabledReason, 'failing_5d');
  const change = { id, endpoint: 'https://example.org', eventTypes: [] };
  const { webhook } = await app.service.updateWebhook(change, app.caller);
  assert.is(webhook?.status, 'ENABLED');
  assert.is(webhook?.failingSince, undefined);
  assert.is(webhook?.disabledAt, undefined);
});

webhooks('unsubscribe-cancels: pending deliveries of that type, and no others', async () => {
  await using app = boot();
  const { id } = await app.create('https://example.com', [TYPE, OTHER]);
  app.emit(TYPE);
  app.emit(OTHER);
  await app.service.updateWebhook({ id, endpoint: undefined, eventTypes: [OTHER] }, app.caller);
  const sql = `SELECT type, state, reason FROM deliveries
    JOIN events ON events.id = event_id ORDER BY type`;
  assert.equal(app.rows(sql), [
    { type: TYPE, state: 'cancelled', reason: 'unsubscribed' },
    { type: OTHER, state: 'pending', reason: null },
  ]);
  assert.equal(app.rows('SELECT next_due FROM webhooks'), [{ next_due: app.clock.now() }]);
});

webhooks('a deletion cancels pending deliveries and wipes the secrets', async () => {
  await using app = boot();
  const { id } = await app.create();
  app.emit(TYPE);
  assert.equal(await app.service.deleteWebhook({ id }, app.caller), {});
  assert.equal(app.rows('SELECT state, reason, due FROM deliveries'), [
    { state: 'cancelled', reason: 'webhook_deleted', due: null },
  ]);
  assert.equal(app.rows('SELECT seq FROM webhook_secrets'), []);
  for (const act of [app.service.getWebhook, app.service.deleteWebhook]) {
    const fault = await faultOf(act({ id }, app.caller) as Promise<unknown>);
    assert.is(fault.reason, 'RESOURCE_NOT_FOUND');
  }
  app.emit(TYPE);
  assert.is(app.rows('SELECT id FROM events').length, 1, 'nobody subscribes, so no event is kept');
});

webhooks('an id that is not a UUID is malformed, that of another project unknown', async () => {
  await using app = boot();
  const { id } = await app.create();
  const malformed = await faultOf(app.service.getWebhook({ id: 'x' }, app.caller));
  assert.is(malformed.row.http, 400);
  const foreign = callerOf(newId());
  for (const act of [app.service.getWebhook, app.service.deleteWebhook]) {
    assert.is((await faultOf(act({ id }, foreign) as Promise<unknown>)).row.http, 404);
  }
  const rotate = app.service.rotateSecret({ id, revokeImmediately: true }, foreign);
  assert.is((await faultOf(rotate)).row.http, 404);
  assert.is(app.rows('SELECT seq FROM webhook_secrets').length, 1);
});

webhooks('a rotation returns a new secret; the old one is valid for 24 h', async () => {
  await using app = boot();
  const { id, secret: first } = await app.create();
  const { secret } = await app.service.rotateSecret({ id, revokeImmediately: false }, app.caller);
  assert.is.not(secret, first);
  assert.equal(app.rows('SELECT seq, expires_at FROM webhook_secrets ORDER BY seq'), [
    { seq: 1, expires_at: app.clock.now() + 24 * HOUR },
    { seq: 2, expires_at: null },
  ]);
});

webhooks('a second rotation does not extend the first secret', async () => {
  await using app = boot();
  const { id } = await app.create();
  const end = app.clock.now() + 24 * HOUR;
  await app.service.rotateSecret({ id, revokeImmediately: false }, app.caller);
  app.clock.advance(HOUR);
  await app.service.rotateSecret({ id, revokeImmediately: false }, app.caller);
  const [row] = app.rows('SELECT expires_at FROM webhook_secrets WHERE seq = 1');
  assert.is(row?.['expires_at'], end);
});

webhooks('revokeImmediately wipes the old secrets at once', async () => {
  await using app = boot();
  const { id } = await app.create();
  await app.service.rotateSecret({ id, revokeImmediately: true }, app.caller);
  assert.equal(app.rows('SELECT seq FROM webhook_secrets'), [{ seq: 2 }]);
});

webhooks('a sixth live secret is refused until one ends or the others are revoked', async () => {
  await using app = boot();
  const { id } = await app.create();
  const rotate = (revokeImmediately: boolean) =>
    app.service.rotateSecret({ id, revokeImmediately }, app.caller);
  for (let n = 0; n < 4; n += 1) await rotate(false);
  const fault = await faultOf(rotate(false));
  assert.is(fault.reason, 'TOO_MANY_SECRETS');
  assert.is(app.rows('SELECT seq FROM webhook_secrets').length, 5);
  await rotate(true);
  assert.equal(app.rows('SELECT seq FROM webhook_secrets'), [{ seq: 6 }]);
  for (let n = 0; n < 4; n += 1) await rotate(false);
  app.clock.advance(24 * HOUR);
  await rotate(false);
});

webhooks('two concurrent rotations both succeed', async () => {
  await using app = boot();
  const { id } = await app.create();
  const rotate = () => app.service.rotateSecret({ id, revokeImmediately: false }, app.caller);
  const made = await Promise.all([rotate(), rotate()]);
  assert.is(new Set(made.map(({ secret }) => secret)).size, 2);
  assert.is(app.rows('SELECT seq FROM webhook_secrets').length, 3);
});

webhooks.run();
