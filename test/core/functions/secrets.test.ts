/** Secrets of functions: sealed at rest, opened for a lease: proto/spec/functions.md 11. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import type { InvocationWork } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { sealedFor } from '../../support/clients/seal.ts';
import { isStored, rowsOf } from '../../support/core/database.ts';
import { faultOf } from '../../support/fault.ts';
import { type Booted, boot } from '../boot.ts';

const test = suite('core/functions/secrets');
const MISSING = '01a1fbc0-0000-7000-8000-000000000000';
const PAGE = { limit: undefined, cursor: undefined, startAt: undefined, endAt: undefined };

/** A value as a client seals it. */
async function sealed(app: Booted, value: string | Buffer, as = app.asProject) {
  return sealedFor(await app.clients.secrets.getSecretsKeypair({}, as), value);
}

async function create(app: Booted, secretKey: string, value: string | Buffer, as = app.asProject) {
  const wanted = { secretKey, ...(await sealed(app, value, as)) };
  return must((await app.clients.secrets.createSecret(wanted, as)).secret, 'a secret').id;
}

/** The secrets in the next lease, by name; the invocation stays open. */
async function leased(app: Booted, functionId: string): Promise<Record<string, string>> {
  await app.invoke(functionId);
  const { item } = must((await app.lease('INVOCATION'))[0], 'an invocation to lease');
  return byName(item?.value as InvocationWork);
}

function byName({ secrets }: InvocationWork): Record<string, string> {
  return Object.fromEntries(secrets.map(({ secretKey, value }) => [secretKey, value]));
}

async function otherProject(app: Booted): Promise<Booted['asProject']> {
  const { clients, asOperator } = app;
  const wanted = { name: 'other', limits: {} };
  const { project } = await clients.operators.createProject(wanted, asOperator);
  const owner = { project: must(project?.project, 'a project').id, name: '' };
  const { key } = await clients.operators.createApiKey(owner, asOperator);
  return { metadata: { 'x-svc-api-key': key } };
}

test('a project has one key pair of its own', async () => {
  await using app = await boot();
  const pairs = await Promise.all(
    Array.from({ length: 4 }, () => app.clients.secrets.getSecretsKeypair({}, app.asProject)),
  );
  assert.is(new Set(pairs.map(({ id }) => id)).size, 1);
  assert.is(Buffer.from(must(pairs[0], 'pair').publicKey, 'base64').length, 32);
  const theirs = await app.clients.secrets.getSecretsKeypair({}, await otherProject(app));
  assert.not.equal(theirs, pairs[0]);
});

test('a lease has the values of attached secrets; a change counts from the next one', async () => {
  await using app = await boot();
  const { secrets } = app.clients;
  const functionId = await app.publish({ name: 'f' });
  const [a, b] = [await create(app, 'A', 'first'), await create(app, 'B_2', 'ünï\ncode\u0000')];
  assert.equal(await leased(app, functionId), {}, 'not attached');
  for (const secretId of [a, b, a]) {
    await secrets.attachSecret({ functionId, secretId }, app.asProject);
  }
  assert.equal(await leased(app, functionId), { A: 'first', B_2: 'ünï\ncode\u0000' });
  await secrets.updateSecret({ id: a, ...(await sealed(app, 'second')) }, app.asProject);
  await secrets.detachSecret({ functionId, secretId: b }, app.asProject);
  await secrets.detachSecret({ functionId, secretId: b }, app.asProject);
  assert.equal(await leased(app, functionId), { A: 'second' });
  await secrets.deleteSecret({ id: a }, app.asProject);
  assert.equal(await leased(app, functionId), {});
  assert.equal(
    (await secrets.listFunctionSecrets({ functionId, ...PAGE }, app.asProject)).data,
    [],
  );
});

test('another function of the project has none of them', async () => {
  await using app = await boot();
  const [one, other] = [await app.publish({ name: 'one' }), await app.publish({ name: 'other' })];
  const secretId = await create(app, 'A', 'value');
  await app.clients.secrets.attachSecret({ functionId: one, secretId }, app.asProject);
  assert.equal(await leased(app, other), {});
});

test('wrong fields are named, and nothing is stored', async () => {
  await using app = await boot();
  const { secrets } = app.clients;
  const good = { secretKey: 'A', ...(await sealed(app, 'value')) };
  const refused = async (change: Partial<typeof good>) =>
    (await faultOf(secrets.createSecret({ ...good, ...change }, app.asProject))).message;
  for (const secretKey of ['', 'a-b', '1a', 'a b', 'é', 'a\n', 'a'.repeat(129)]) {
    assert.match(await refused({ secretKey }), /^`secretKey` must/);
  }
  const bytes = (length: number) => Buffer.alloc(length, 1).toString('base64');
  const values = ['', 'ä', 'a', bytes(47), bytes(65_537), `${bytes(48)}\n`, bytes(49).slice(0, -2)];
  for (const sealedSecretValue of [...values, Buffer.alloc(60, 255).toString('base64url')]) {
    assert.match(await refused({ sealedSecretValue }), /^`sealedSecretValue` must/);
  }
  const as = await otherProject(app);
  const theirs = (await secrets.getSecretsKeypair({}, as)).id;
  for (const keypairId of ['', 'x', MISSING, theirs]) {
    assert.match(await refused({ keypairId }), /^`keypairId` must/);
  }
  assert.equal((await secrets.listSecrets(PAGE, app.asProject)).data, []);
  const longest = { ...good, secretKey: `_${'Z9'.repeat(63)}x`, sealedSecretValue: bytes(65_536) };
  await secrets.createSecret(longest, app.asProject);
  const { keypairId: _, ...update } = { id: MISSING, ...good };
  const wrong = secrets.updateSecret({ ...update, keypairId: 'x' }, app.asProject);
  assert.match((await faultOf(wrong)).message, /^`keypairId`/);
});

test('a name is taken once in a project, and free after the deletion', async () => {
  await using app = await boot();
  const id = await create(app, 'A', 'value');
  const again = await faultOf(create(app, 'A', 'value'));
  assert.equal([again.reason, again.facts], ['SECRET_NAME_TAKEN', { secretKey: 'A' }]);
  await create(app, 'a', 'names differ by case');
  await create(app, 'A', 'value', await otherProject(app));
  await app.clients.secrets.deleteSecret({ id }, app.asProject);
  await create(app, 'A', 'value');
});

test('lists have pages by cursor and times, both inclusive', async () => {
  await using app = await boot();
  const { secrets } = app.clients;
  const functionId = await app.publish({ name: 'f' });
  const times: string[] = [];
  for (const name of ['A', 'B', 'C']) {
    app.clock.advance(1_000);
    times.push(new Date(app.clock.now()).toISOString());
    const secretId = await create(app, name, 'value');
    if (name !== 'B') await secrets.attachSecret({ functionId, secretId }, app.asProject);
  }
  const names = async (page: Partial<typeof PAGE> & object) => {
    const all = await secrets.listSecrets({ ...PAGE, ...page }, app.asProject);
    const own = await secrets.listFunctionSecrets({ ...PAGE, ...page, functionId }, app.asProject);
    return [all, own].map(({ data }) => data.map(({ secretKey }) => secretKey).join(''));
  };
  assert.equal(await names({}), ['CBA', 'CA']);
  const [first, second] = times as [string, string];
  assert.equal(await names({ startAt: second } as object), ['CB', 'C']);
  assert.equal(await names({ endAt: first } as object), ['A', 'A']);
  assert.equal(await names({ startAt: second, endAt: second } as object), ['B', '']);
  const page = { ...PAGE, limit: 1 };
  const one = await secrets.listFunctionSecrets({ ...page, functionId }, app.asProject);
  const cursor = String(one.nextCursor);
  const two = await secrets.listFunctionSecrets({ ...page, cursor, functionId }, app.asProject);
  assert.equal([one.limit, one.data[0]?.secretKey, two.data[0]?.secretKey], [1, 'C', 'A']);
  assert.is(two.nextCursor, null);
  for (const wrong of [{ startAt: 'x' }, { endAt: '2026-13-01' }, { limit: 0 }, { limit: 101 }]) {
    const [field] = Object.keys(wrong);
    const fault = await faultOf(secrets.listSecrets({ ...PAGE, ...wrong }, app.asProject));
    assert.ok(fault.message.startsWith(`\`${field}\``));
  }
});

test('another project reads, changes, attaches and detaches nothing', async () => {
  await using app = await boot();
  const { secrets } = app.clients;
  const functionId = await app.publish({ name: 'f' });
  const id = await create(app, 'A', 'value');
  await secrets.attachSecret({ functionId, secretId: id }, app.asProject);
  const as = await otherProject(app);
  const theirs = { ...(await sealed(app, 'changed', as)) };
  const secretId = await create(app, 'THEIRS', 'value', as);
  const attempts = [
    secrets.getSecret({ id }, as),
    secrets.updateSecret({ id, ...theirs }, as),
    secrets.deleteSecret({ id }, as),
    secrets.attachSecret({ functionId, secretId }, as),
    secrets.attachSecret({ functionId, secretId: id }, as),
    secrets.detachSecret({ functionId, secretId: id }, as),
    secrets.listFunctionSecrets({ functionId, ...PAGE }, as),
    secrets.attachSecret({ functionId, secretId }, app.asProject),
    secrets.attachSecret({ functionId: MISSING, secretId: id }, app.asProject),
  ];
  for (const fault of await Promise.all(attempts.map(faultOf))) {
    assert.is(fault.reason, 'RESOURCE_NOT_FOUND');
  }
  assert.equal((await secrets.listSecrets(PAGE, as)).data, [{ id: secretId, secretKey: 'THEIRS' }]);
  assert.equal(await leased(app, functionId), { A: 'value' });
});

test('a project has 100 secrets, a function 50', async () => {
  await using app = await boot();
  const { secrets } = app.clients;
  const functionId = await app.publish({ name: 'f' });
  const value = await sealed(app, 'value');
  const ids: string[] = [];
  for (let at = 0; at < 100; at += 1) {
    const { secret } = await secrets.createSecret({ secretKey: `S${at}`, ...value }, app.asProject);
    ids.push(must(secret, 'a secret').id);
  }
  const more = await faultOf(secrets.createSecret({ secretKey: 'S', ...value }, app.asProject));
  assert.equal([more.reason, more.facts], ['TOO_MANY_SECRETS', { max: 100 }]);
  const attach = (secretId: string) =>
    secrets.attachSecret({ functionId, secretId }, app.asProject);
  for (const id of ids.slice(0, 50)) await attach(id);
  await attach(must(ids[0], 'an id'));
  const full = await faultOf(attach(must(ids[50], 'an id')));
  assert.equal([full.reason, full.facts], ['TOO_MANY_SECRETS', { max: 50 }]);
  assert.is(Object.keys(await leased(app, functionId)).length, 50);
});

test('the sealed values of a project have at most 256 KiB together', async () => {
  await using app = await boot();
  const { secrets } = app.clients;
  const functionId = await app.publish({ name: 'f' });
  const largest = 'x'.repeat(65_488);
  for (const name of ['A', 'B', 'C', 'D']) {
    const secretId = await create(app, name, largest);
    await secrets.attachSecret({ functionId, secretId }, app.asProject);
  }
  const refused = async (attempt: Promise<unknown>) => {
    const { reason, facts } = await faultOf(attempt);
    assert.equal([reason, facts], ['TOO_MANY_SECRETS', { maxBytes: 262_144 }]);
  };
  await refused(create(app, 'E', ''));
  await create(app, 'E', largest, await otherProject(app));
  const { data } = await secrets.listSecrets(PAGE, app.asProject);
  const id = must(data[0], 'a secret').id;
  const change = async (value: string) =>
    secrets.updateSecret({ id, ...(await sealed(app, value)) }, app.asProject);
  await change(largest); // its own value does not count beside the new one
  await change('x'.repeat(65_488 - 49));
  await create(app, 'E', 'x');
  await refused(change(largest));
  const seen = await leased(app, functionId);
  assert.is(Object.values(seen).join('').length, 4 * 65_488 - 49);
});

test('a secret that does not open ends the invocation; the cause has its name', async () => {
  await using app = await boot();
  const { secrets } = app.clients;
  const functionId = await app.publish({ name: 'f' });
  const broken = {
    GARBAGE: Buffer.alloc(80, 7).toString('base64'),
    NOT_TEXT: (await sealed(app, Buffer.from([0xff, 0xfe]))).sealedSecretValue,
  };
  const { keypairId } = await sealed(app, '');
  for (const [secretKey, sealedSecretValue] of Object.entries(broken)) {
    const wanted = { secretKey, keypairId, sealedSecretValue };
    const { secret } = await secrets.createSecret(wanted, app.asProject);
    const secretId = must(secret, 'a secret').id;
    await secrets.attachSecret({ functionId, secretId }, app.asProject);
    const { id } = await app.invoke(functionId);
    assert.equal(await app.lease('INVOCATION'), [], 'no runner receives it');
    const { invocation } = await app.clients.invocations.getInvocation({ id }, app.asProject);
    assert.is(invocation?.status, 'FAILED');
    assert.is(invocation?.cause?.code, 'INTERNAL_ERROR');
    assert.is(
      invocation?.cause?.message,
      `the secret "${secretKey}" could not be opened: store its value again`,
    );
    await secrets.detachSecret({ functionId, secretId }, app.asProject);
  }
  assert.not.ok(app.logged.join().includes(broken.GARBAGE));
});

test('the database has no value; a damaged key pair ends the invocation', async () => {
  const value = 'a-value-that-is-marked-b6ff';
  await using app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const secretId = await create(app, 'MARKED', value);
  await app.clients.secrets.attachSecret({ functionId, secretId }, app.asProject);
  assert.equal(await leased(app, functionId), { MARKED: value });
  assert.not.ok(await isStored(app.dir, value));
  assert.ok(await isStored(app.dir, 'MARKED'), 'what is no secret is found');
  await rowsOf(app.dir, 'UPDATE secret_key_pairs SET private_key = ?', Buffer.alloc(61));
  const { id } = await app.invoke(functionId);
  assert.equal(await app.lease('INVOCATION'), [], 'no runner receives it');
  const { invocation } = await app.clients.invocations.getInvocation({ id }, app.asProject);
  assert.match(String(invocation?.cause?.message), /^the secret "MARKED" could not be opened/);
});

test('the deletion of a function removes its attachments and keeps the secrets', async () => {
  await using app = await boot();
  const { secrets, functions } = app.clients;
  const functionId = await app.publish({ name: 'f' });
  const secretId = await create(app, 'A', 'value');
  await secrets.attachSecret({ functionId, secretId }, app.asProject);
  await functions.deleteFunction({ id: functionId }, app.asProject);
  const gone = secrets.attachSecret({ functionId, secretId }, app.asProject);
  assert.is((await faultOf(gone)).reason, 'RESOURCE_NOT_FOUND');
  const again = await app.publish({ name: 'f' });
  assert.equal(await leased(app, again), {});
  assert.is((await secrets.listSecrets(PAGE, app.asProject)).data.length, 1);
});

test.run();
