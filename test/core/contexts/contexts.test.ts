/** Contexts: proto/spec/contexts.md 1, 2. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { sealerOf } from '../../../core/common/sealer.ts';
import { readCoreConfig } from '../../../core/config.ts';
import { contextService } from '../../../core/contexts/contexts.ts';
import { type KeyPool, privateKeyData } from '../../../core/contexts/key-pool.ts';
import { contextLinks } from '../../../core/contexts/links.ts';
import { openQuotas } from '../../../core/projects/quotas.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { testClock } from '../../support/clock.ts';
import { bareStore, callerOf } from '../../support/core/bare-store.ts';
import { faultOf } from '../../support/fault.ts';

const contexts = suite('core/contexts/contexts');
const sealer = sealerOf(Buffer.alloc(32, 1));

/**
 * The service on a store whose pool holds `ready` pairs, made up: only their taking matters here.
 */
async function boot(ready = 20) {
  const bare = bareStore();
  for (let n = 0; n < ready; n += 1) {
    const id = newId();
    const privateKey = sealer.seal(Buffer.of(n), privateKeyData(id));
    await bare.store.addKeyPair({ id, publicKey: `key ${n}`, privateKey, at: 0 });
  }
  const clock = testClock();
  let takenCount = 0;
  const keys: KeyPool = {
    taken() {
      takenCount += 1;
    },
    isAwaited: false,
    wait: () => Promise.reject(new Fault('KEYS_NOT_READY', 'none')),
    [Symbol.asyncDispose]: async () => {},
  };
  const links = contextLinks({ sealer, now: clock.now, isRevoked: async () => false });
  const removed: string[] = [];
  const files = { remove: async (id: string) => void removed.push(id) };
  const quotas = openQuotas({ store: bare.store, defaults: readCoreConfig({}).quotas });
  const service = contextService({
    store: bare.store,
    keys,
    quotas,
    links,
    files,
    now: clock.now,
  });
  const caller = callerOf(bare.projectId);
  const create = (name?: string) => service.createContext({ projectId: undefined, name }, caller);
  const dispose = () => bare[Symbol.asyncDispose]();
  return {
    ...bare,
    service,
    caller,
    create,
    clock,
    links,
    removed,
    taken: () => takenCount,
    [Symbol.asyncDispose]: dispose,
  };
}

contexts('creation returns the four required members and the upload URL', async () => {
  await using app = await boot();
  const made = await app.create('profile');
  assert.equal(Object.keys(made).sort(), [
    'cipherAlgorithm',
    'id',
    'initializationVectorSize',
    'publicKey',
    'uploadUrl',
  ]);
  assert.equal(await app.links.read('PUT', made.uploadUrl), {
    id: made.id,
    projectId: app.projectId,
  });
  assert.is(made.cipherAlgorithm, 'AES-256-CBC');
  assert.is(made.initializationVectorSize, 16);
  assert.is(app.taken(), 1);
});

contexts('each context has its own key pair, taken from the pool', async () => {
  await using app = await boot(2);
  const [one, two] = [await app.create(), await app.create()];
  assert.is.not(one.publicKey, two.publicKey);
  assert.is(await app.store.countKeyPairs(), 0);
  const fault = await faultOf(app.create());
  assert.is(fault.reason, 'KEYS_NOT_READY');
  assert.is(fault.row.http, 503);
  assert.is(app.rows('SELECT id FROM contexts').length, 2);
});

contexts('a name is trimmed of all white space and read back', async () => {
  await using app = await boot();
  const { id } = await app.create(' \t\u0085\u00a0\u3000My profile\u2028 ');
  const { context } = await app.service.getContext({ id }, app.caller);
  assert.is(context?.name, 'My profile');
  assert.is(context?.projectId, app.projectId);
});

for (const [what, name] of [
  ['an empty name', ''],
  ['white space alone', ' \u3000 '],
  ['129 characters', 'x'.repeat(129)],
  ['129 characters of two units', '🦊'.repeat(129)],
  ['half a character', 'a\ud800b'],
] as const) {
  contexts(`${what} is refused and takes no key`, async () => {
    await using app = await boot(1);
    const fault = await faultOf(app.create(name));
    assert.is(fault.reason, 'INVALID_FIELD');
    assert.is(fault.facts['field'], 'name');
    assert.is(await app.store.countKeyPairs(), 1);
  });
}

contexts(
  '128 characters with surrounding white space are accepted, whatever their UTF-16 length',
  async () => {
    await using app = await boot();
    await app.create(`  ${'x'.repeat(128)}  `);
    await app.create('🦊'.repeat(128));
  },
);

for (const [what, first, second] of [
  ['case', 'Profile', 'pROFILE'],
  ['composition', 'caf\u00e9', 'cafe\u0301'],
  ['white space around it', 'a', ' a '],
  ['case beyond ASCII', 'ÄÖ', 'äö'],
  ['case that depends on its place', 'ΟΔΟΣ', 'οδος'],
  ['case that changes the length', 'Straße', 'STRASSE'],
] as const) {
  contexts(`two names that differ in ${what} are the same name`, async () => {
    await using app = await boot(2);
    await app.create(first);
    const fault = await faultOf(app.create(second));
    assert.is(fault.reason, 'CONTEXT_NAME_TAKEN');
    assert.is(fault.message, `A context named "${second.trim()}" already exists.`);
    assert.is(await app.store.countKeyPairs(), 1);
  });
}

contexts('contexts without a name do not collide', async () => {
  await using app = await boot();
  await app.create();
  await app.create();
});

contexts('deleting a context frees its name and wipes its private key', async () => {
  await using app = await boot();
  const { id } = await app.create('one');
  assert.equal(await app.service.deleteContext({ id }, app.caller), {});
  for (const act of [
    app.service.getContext,
    app.service.deleteContext,
    app.service.updateContext,
  ]) {
    const fault = await faultOf(act({ id }, app.caller) as Promise<unknown>);
    assert.is(fault.reason, 'RESOURCE_NOT_FOUND');
    assert.is(fault.message, 'Context not found.');
  }
  await app.create('ONE');
  assert.equal(app.rows('SELECT private_key FROM contexts WHERE id = ?', id), [
    { private_key: null },
  ]);
});

contexts('an id that is not a UUID is unknown, not malformed', async () => {
  await using app = await boot();
  const fault = await faultOf(app.service.getContext({ id: 'nonsense' }, app.caller));
  assert.is(fault.row.http, 404);
});

contexts("another project's context is as unknown as a missing one", async () => {
  await using app = await boot();
  const { id } = await app.create('one');
  const other = callerOf(newId());
  const fault = await faultOf(app.service.getContext({ id }, other));
  const missing = await faultOf(app.service.getContext({ id: newId() }, app.caller));
  assert.is(fault.message, missing.message);
  assert.is((await faultOf(app.service.deleteContext({ id }, other))).reason, 'RESOURCE_NOT_FOUND');
  assert.ok((await app.service.getContext({ id }, app.caller)).context);
});

contexts("a projectId that is not the key's is refused", async () => {
  await using app = await boot();
  const request = { projectId: newId(), name: undefined };
  assert.is(
    (await faultOf(app.service.createContext(request, app.caller))).reason,
    'PROJECT_MISMATCH',
  );
  await app.service.createContext({ projectId: app.projectId, name: undefined }, app.caller);
});

contexts(
  'an update returns the members of creation with a new URL, and changes nothing',
  async () => {
    await using app = await boot();
    const made = await app.create('one');
    const before = app.rows('SELECT * FROM contexts');
    app.clock.advance(1_000);
    const { uploadUrl, ...rest } = await app.service.updateContext({ id: made.id }, app.caller);
    assert.equal({ ...rest, uploadUrl: made.uploadUrl }, made);
    assert.is.not(uploadUrl, made.uploadUrl);
    assert.is((await app.links.read('PUT', uploadUrl)).id, made.id);
    assert.equal(app.rows('SELECT * FROM contexts'), before);
  },
);

contexts('a list pages from the newest, without repeats or gaps', async () => {
  await using app = await boot();
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1) ids.unshift((await app.create(`c${n}`)).id);
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await app.service.listContexts({ limit: 2, cursor }, app.caller);
    assert.is(page.limit, 2);
    seen.push(...page.data.map(({ id }) => id));
    cursor = (page.nextCursor as string | null) ?? undefined;
    if (!cursor) assert.is(page.nextCursor, null);
  } while (cursor);
  assert.equal(seen, ids);
});

for (const [what, request, reason] of [
  ['limit 0', { limit: 0, cursor: undefined }, 'INVALID_FIELD'],
  ['limit 101', { limit: 101, cursor: undefined }, 'INVALID_FIELD'],
  ['a cursor that is no id', { limit: undefined, cursor: 'x' }, 'INVALID_CURSOR'],
] as const) {
  contexts(`${what} is refused`, async () => {
    await using app = await boot();
    assert.is((await faultOf(app.service.listContexts(request, app.caller))).reason, reason);
  });
}

contexts.run();
