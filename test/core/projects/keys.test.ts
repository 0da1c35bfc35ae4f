/** API keys that a project makes and revokes itself, over the console's client. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import { bareStore } from '../../support/core/bare-store.ts';
import { faultOf } from '../../support/fault.ts';
import { type Booted, boot, KEY } from '../boot.ts';

const test = suite('core/projects/keys');

const keyed = (key: string) => ({ metadata: { 'x-svc-api-key': key } });

async function make({ clients, asProject }: Booted, name = '', as: CallOptions = asProject) {
  const { key, text } = await clients.consoleSettings.createKey({ name }, as);
  return { ...must(key, 'a key'), text };
}

async function list({ clients, asProject }: Booted, as: CallOptions = asProject) {
  return await clients.consoleSettings.listKeys({}, as);
}

/** A key of another project. */
async function stranger({ clients, asOperator }: Booted) {
  await clients.operators.createProject({ name: 'other', limits: {} }, asOperator);
  const wanted = { project: 'other', name: 'theirs' };
  const { key, apiKey } = await clients.operators.createApiKey(wanted, asOperator);
  return { as: keyed(key), id: must(apiKey, 'a key').id };
}

test('a key is returned once, and listed with its maker and without its text', async () => {
  await using app = await boot();
  const { text, ...made } = await make(app, ' ci ');
  await app.clients.projects.listProjects({}, keyed(text));
  const second = await make(app, 'second', keyed(text));
  assert.is(second.madeBy, made.id);
  const { keys, ownKeyId } = await list(app);
  assert.equal(
    keys.map(({ name, madeBy }) => [name, madeBy]),
    [
      ['second', made.id],
      ['ci', ownKeyId],
      ['preset', undefined],
    ],
  );
  assert.is(keys[2]?.id, ownKeyId);
  assert.is(made.createdAt?.getTime(), app.clock.now());
  const at = app.clock.now();
  assert.is(keys[1]?.lastUsedAt?.getTime(), at - (at % 60_000));
  assert.not.ok(JSON.stringify(keys).includes(text.slice(13)));
});

test('a revoked key and its logins are refused at once', async () => {
  await using app = await boot();
  const { clients, asGateway, asProject } = app;
  const { id, text } = await make(app);
  const credential = { $case: 'apiKey', value: text } as const;
  const wanted = { credential, client: '127.0.0.1' };
  const login = await clients.consoleLogins.createConsoleLogin(wanted, asGateway);
  const asLogin = { metadata: { 'x-console-login': login.text } };
  assert.is((await list(app, asLogin)).ownKeyId, id);
  assert.is((await list(app)).keys.find((key) => key.id === id)?.logins, 1);
  const settings = clients.consoleSettings;
  const { key } = await settings.revokeKey({ id, last: false }, asProject);
  assert.is(key?.revokedAt?.getTime(), app.clock.now());
  for (const as of [keyed(text), asLogin]) {
    assert.is((await faultOf(list(app, as))).reason, 'API_KEY_INVALID');
  }
  app.clock.advance(5_000);
  const again = await settings.revokeKey({ id, last: false }, asProject);
  assert.equal(again.key, key, 'it is not changed');
  assert.equal(
    (await list(app)).keys.map((one) => [one.name, one.logins]),
    [
      ['preset', 0],
      ['', 0],
    ],
    'a revoked one is last, and without logins',
  );
});

test('the last valid key is revoked only when the caller says so', async () => {
  await using app = await boot();
  const { clients, asProject } = app;
  const id = must((await list(app)).ownKeyId, 'a key');
  const other = await make(app);
  const settings = clients.consoleSettings;
  await settings.revokeKey({ id: other.id, last: false }, asProject);
  const fault = await faultOf(settings.revokeKey({ id, last: false }, asProject));
  assert.equal([fault.reason, fault.row.http], ['LAST_API_KEY', 409]);
  assert.is((await list(app)).keys[0]?.revokedAt, undefined);
  await settings.revokeKey({ id, last: true }, keyed(KEY));
  assert.is((await faultOf(list(app))).reason, 'API_KEY_INVALID');
});

test('a key of another project is neither listed nor revoked', async () => {
  await using app = await boot();
  const { clients, asProject } = app;
  const { as, id } = await stranger(app);
  const own = must((await list(app)).ownKeyId, 'a key');
  assert.equal(
    (await list(app, as)).keys.map((key) => key.id),
    [id],
  );
  const revoke = (wanted: string, who: CallOptions) =>
    faultOf(clients.consoleSettings.revokeKey({ id: wanted, last: true }, who));
  const foreign = await revoke(own, as);
  const unknown = await revoke('zzzzzzzz', as);
  assert.equal([foreign.reason, foreign.message], [unknown.reason, unknown.message]);
  assert.is(foreign.reason, 'RESOURCE_NOT_FOUND');
  assert.is((await revoke(id, asProject)).reason, 'RESOURCE_NOT_FOUND');
  const made = await make(app, 'mine', as);
  assert.not.ok((await list(app)).keys.some((key) => key.id === made.id));
  for (const who of [app.asRunner, app.asGateway, app.asOperator]) {
    assert.is((await faultOf(list(app, who))).reason, 'API_KEY_MISSING');
  }
});

test('a project has at most 100 valid keys', async () => {
  await using app = await boot();
  const { clients, asProject } = app;
  const first = await make(app);
  for (let count = 2; count < 100; count += 1) await make(app);
  const fault = await faultOf(make(app));
  assert.equal([fault.reason, fault.facts['limit']], ['TOO_MANY_API_KEYS', 100]);
  assert.match(fault.message, 'at most 100 valid API keys');
  await clients.consoleSettings.revokeKey({ id: first.id, last: false }, asProject);
  await make(app);
});

test('keys of the last day are bounded, the revoked ones too, and old ones removed', async () => {
  await using bare = bareStore();
  const { store, projectId, rows } = bare;
  const limits = { max: 3, recentMax: 5, keptMax: 2 };
  let count = 0;
  const add = (at: number, madeBy = 'maker') => {
    count += 1;
    const own = { hash: Buffer.from(`${count}`), publicId: `key-${count}`, name: '' };
    return store.createProjectKey(
      { ...own, projectId, madeBy, at },
      { ...limits, since: at - 100 },
    );
  };
  const revoke = (at: number) =>
    store.revokeProjectKey({ id: `key-${count}`, projectId, evenLast: true, at });
  await store.addApiKey({ hash: Buffer.from('p'), projectId, publicId: 'preset', name: '', at: 0 });
  await store.revokeApiKey({ id: 'preset', at: 0 });
  for (let at = 1; at < 5; at += 1) {
    assert.is(await add(at), 'added');
    await revoke(at);
  }
  assert.is(await add(5), 'full', 'the preset one and four of the last 100 ms');
  assert.is(await add(200), 'added');
  const left = rows('SELECT public_id AS id FROM api_keys ORDER BY created_at').map(({ id }) => id);
  assert.equal(left, ['preset', 'key-3', 'key-4', 'key-6'], "the operator's stays");
});

test('a wrong name is refused', async () => {
  await using app = await boot();
  for (const name of ['x'.repeat(129), 'a\nb']) {
    assert.is((await faultOf(make(app, name))).facts['field'], 'name');
  }
});

test.run();
