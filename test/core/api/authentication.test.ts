import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { authenticator, checksum, hashOf, newApiKey } from '../../../core/api/authentication.ts';
import { testClock } from '../../support/clock.ts';
import { faultOf } from '../../support/fault.ts';

const test = suite('core/api/authentication');

const TOKENS = { runner: 'r'.repeat(43), gateway: 'g'.repeat(43), operator: 'o'.repeat(43) };

/** An authenticator over these keys, with the number of its look-ups. */
function authenticatorOf(...keys: string[]) {
  const clock = testClock();
  const live = new Set(keys.map((key) => hashOf(key).toString('hex')));
  const asked = { times: 0 };
  const uses: number[] = [];
  const store = {
    async findApiKey(hash: Uint8Array) {
      asked.times += 1;
      const isLive = live.has(Buffer.from(hash).toString('hex'));
      const lastUsedAt = uses.at(-1) ?? null;
      return isLive ? { projectId: 'p', publicId: 'abcdefgh', lastUsedAt } : undefined;
    },
    async getProject() {
      return undefined;
    },
    async useApiKey({ at }: { at: number }) {
      uses.push(at);
    },
  };
  const loginCaller = async (login: string) => ({ kind: 'project', projectId: login }) as const;
  const shareCaller = async (token: string) => {
    const right = { projectId: 'p', sessionId: token, until: 1, hasLog: false };
    return { kind: 'share', ...right } as const;
  };
  const clocks = { now: clock.now, steady: clock.now };
  const callers = { loginCaller, shareCaller };
  const entrance = authenticator({ store, tokens: TOKENS, ...callers, ...clocks });
  return { enter: entrance.authenticate, forgetKey: entrance.forgetKey, clock, live, asked, uses };
}

test('an API key is svc_, public id, 43 characters, checksum', () => {
  const { key, publicId } = newApiKey();
  assert.match(key, /^svc_[a-z0-9]{8}_[A-Za-z0-9_-]{49}$/);
  assert.ok(key.startsWith(`svc_${publicId}_`));
  assert.is(key.slice(-6), checksum(key.slice(0, -6)));
  assert.is.not(newApiKey().key, key);
});

test('an API key authenticates its project, other text does not', async () => {
  const { key } = newApiKey();
  const { enter } = authenticatorOf(key);
  const caller = { kind: 'project', projectId: 'p', keyId: 'abcdefgh' };
  assert.equal(await enter({ 'x-svc-api-key': key }), caller);
  for (const text of [`${key}x`, key.slice(0, -1), key.toUpperCase(), 'x', TOKENS.runner]) {
    const fault = await faultOf(enter({ 'x-svc-api-key': text }));
    assert.is(fault.reason, 'API_KEY_INVALID');
    assert.is(fault.message, 'Invalid API key.');
  }
});

test('a login of the console is found by its own metadata only', async () => {
  const { enter, asked } = authenticatorOf();
  const caller = { kind: 'project', projectId: 'login' } as const;
  assert.equal(await enter({ 'x-console-login': 'login' }), caller);
  assert.is(asked.times, 0);
  for (const metadata of [{ 'x-svc-api-key': 'login' }, { authorization: 'Bearer login' }]) {
    assert.is((await faultOf(enter(metadata))).reason, 'API_KEY_INVALID');
  }
});

test('the error for a missing or empty key names the header', async () => {
  const { enter } = authenticatorOf();
  for (const metadata of [{}, { 'x-svc-api-key': '' }, { authorization: 'Basic abc' }]) {
    const fault = await faultOf(enter(metadata));
    assert.is(fault.reason, 'API_KEY_MISSING');
    assert.is(fault.message, 'Missing API key. Send it in the X-SVC-API-Key header.');
  }
});

test('each token authenticates its role: runner, gateway, operator', async () => {
  const { enter, asked } = authenticatorOf();
  assert.equal(await enter({ authorization: `Bearer ${TOKENS.runner}` }), { kind: 'runner' });
  assert.equal(await enter({ authorization: `bearer ${TOKENS.gateway}` }), { kind: 'gateway' });
  assert.equal(await enter({ authorization: `Bearer ${TOKENS.operator}` }), { kind: 'operator' });
  assert.is(asked.times, 0);
  const fault = await faultOf(enter({ authorization: `Bearer ${TOKENS.runner}x` }));
  assert.is(fault.reason, 'API_KEY_INVALID');
});

test('a key is accepted as a Bearer token, and not together with another key', async () => {
  const { key } = newApiKey();
  const { enter } = authenticatorOf(key);
  const authorization = `Bearer ${key}`;
  const caller = { kind: 'project', projectId: 'p', keyId: 'abcdefgh' };
  assert.equal(await enter({ authorization }), caller);
  assert.equal(await enter({ authorization, 'x-svc-api-key': key }), caller);
  for (const other of [`${key}x`, '']) {
    const fault = await faultOf(enter({ authorization, 'x-svc-api-key': other }));
    assert.is(fault.reason, 'API_KEY_MISSING');
  }
});

test('a key is cached for a second, also when another process revokes it', async () => {
  const { enter, clock, live, asked } = authenticatorOf('k'.repeat(24));
  const metadata = { 'x-svc-api-key': 'k'.repeat(24) };
  await enter(metadata);
  await enter(metadata);
  assert.is(asked.times, 1);
  live.clear();
  clock.advance(1_000);
  assert.is((await faultOf(enter(metadata))).reason, 'API_KEY_INVALID');
});

test('revoking a key removes it from the cache, and no other key', async () => {
  const { enter, forgetKey, live, asked } = authenticatorOf('k'.repeat(24));
  const metadata = { 'x-svc-api-key': 'k'.repeat(24) };
  await enter(metadata);
  forgetKey('zzzzzzzz');
  await enter(metadata);
  assert.is(asked.times, 1);
  live.clear();
  forgetKey('abcdefgh');
  assert.is((await faultOf(enter(metadata))).reason, 'API_KEY_INVALID');
});

test('the last use is stored once per minute', async () => {
  const { enter, clock, uses } = authenticatorOf('k'.repeat(24));
  const metadata = { 'x-svc-api-key': 'k'.repeat(24) };
  const first = clock.now();
  for (let n = 0; n < 60; n++) {
    await enter(metadata);
    clock.advance(1_000);
  }
  assert.equal(uses, [first]);
  await enter(metadata);
  assert.equal(uses, [first, first + 60_000]);
});

test.run();
