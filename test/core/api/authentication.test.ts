import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { authenticator, checksum, hashOf, newApiKey } from '../../../core/api/authentication.ts';
import { testClock } from '../../support/clock.ts';
import { faultOf } from '../../support/fault.ts';

const test = suite('core/api/authentication');

const TOKENS = { runner: 'r'.repeat(43), gateway: 'g'.repeat(43), operator: 'o'.repeat(43) };

/** An authenticator over these keys, and how often it asked for one. */
function doorOf(...keys: string[]) {
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
    async useApiKey({ at }: { at: number }) {
      uses.push(at);
    },
  };
  const entrance = authenticator({ store, tokens: TOKENS, now: clock.now, steady: clock.now });
  return { enter: entrance.authenticate, forgetKey: entrance.forgetKey, clock, live, asked, uses };
}

test('a key reads svc_, public id, 43 characters, checksum', () => {
  const { key, publicId } = newApiKey();
  assert.match(key, /^svc_[a-z0-9]{8}_[A-Za-z0-9_-]{49}$/);
  assert.ok(key.startsWith(`svc_${publicId}_`));
  assert.is(key.slice(-6), checksum(key.slice(0, -6)));
  assert.is.not(newApiKey().key, key);
});

test('a key opens its project, any other text does not', async () => {
  const { key } = newApiKey();
  const { enter } = doorOf(key);
  const caller = { kind: 'project', projectId: 'p', keyId: 'abcdefgh' };
  assert.equal(await enter({ 'x-svc-api-key': key }), caller);
  for (const text of [`${key}x`, key.slice(0, -1), key.toUpperCase(), 'x', TOKENS.runner]) {
    const fault = await faultOf(enter({ 'x-svc-api-key': text }));
    assert.is(fault.reason, 'API_KEY_INVALID');
    assert.is(fault.message, 'Invalid API key.');
  }
});

test('no key and an empty one are told how to send it', async () => {
  const { enter } = doorOf();
  for (const metadata of [{}, { 'x-svc-api-key': '' }, { authorization: 'Basic abc' }]) {
    const fault = await faultOf(enter(metadata));
    assert.is(fault.reason, 'API_KEY_MISSING');
    assert.is(fault.message, 'Missing API key. Send it in the X-SVC-API-Key header.');
  }
});

test('a token tells the runner from the gateway and the operator', async () => {
  const { enter, asked } = doorOf();
  assert.equal(await enter({ authorization: `Bearer ${TOKENS.runner}` }), { kind: 'runner' });
  assert.equal(await enter({ authorization: `bearer ${TOKENS.gateway}` }), { kind: 'gateway' });
  assert.equal(await enter({ authorization: `Bearer ${TOKENS.operator}` }), { kind: 'operator' });
  assert.is(asked.times, 0);
  const fault = await faultOf(enter({ authorization: `Bearer ${TOKENS.runner}x` }));
  assert.is(fault.reason, 'API_KEY_INVALID');
});

test('a key opens its project as a Bearer too, and not beside another key', async () => {
  const { key } = newApiKey();
  const { enter } = doorOf(key);
  const authorization = `Bearer ${key}`;
  const caller = { kind: 'project', projectId: 'p', keyId: 'abcdefgh' };
  assert.equal(await enter({ authorization }), caller);
  assert.equal(await enter({ authorization, 'x-svc-api-key': key }), caller);
  for (const other of [`${key}x`, '']) {
    const fault = await faultOf(enter({ authorization, 'x-svc-api-key': other }));
    assert.is(fault.reason, 'API_KEY_MISSING');
  }
});

test('a key is remembered for a second, and a revoked one no longer', async () => {
  const { enter, clock, live, asked } = doorOf('k'.repeat(24));
  const metadata = { 'x-svc-api-key': 'k'.repeat(24) };
  await enter(metadata);
  await enter(metadata);
  assert.is(asked.times, 1);
  live.clear();
  clock.advance(1_000);
  assert.is((await faultOf(enter(metadata))).reason, 'API_KEY_INVALID');
});

test('a key that is revoked here is not remembered at all, others are', async () => {
  const { enter, forgetKey, live, asked } = doorOf('k'.repeat(24));
  const metadata = { 'x-svc-api-key': 'k'.repeat(24) };
  await enter(metadata);
  forgetKey('zzzzzzzz');
  await enter(metadata);
  assert.is(asked.times, 1);
  live.clear();
  forgetKey('abcdefgh');
  assert.is((await faultOf(enter(metadata))).reason, 'API_KEY_INVALID');
});

test('a use is written down once in a minute', async () => {
  const { enter, clock, uses } = doorOf('k'.repeat(24));
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
