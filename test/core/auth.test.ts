import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { authenticator, checksum, hashOf, newApiKey } from '../../core/auth.ts';
import { testClock } from '../support/clock.ts';
import { faultOf } from '../support/fault.ts';

const test = suite('core/auth');

const TOKENS = { runner: 'r'.repeat(43), gateway: 'g'.repeat(43) };

/** An authenticator over these keys, and how often it asked for one. */
function doorOf(...keys: string[]) {
  const clock = testClock();
  const live = new Set(keys.map((key) => hashOf(key).toString('hex')));
  const asked = { times: 0 };
  const store = {
    async findApiKey(hash: Uint8Array) {
      asked.times += 1;
      return live.has(Buffer.from(hash).toString('hex')) ? { projectId: 'p' } : undefined;
    },
  };
  const enter = authenticator({ store, tokens: TOKENS, now: clock.now });
  return { enter, clock, live, asked };
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
  assert.equal(await enter({ 'x-svc-api-key': key }), { kind: 'project', projectId: 'p' });
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

test('a token tells the runner from the gateway', async () => {
  const { enter, asked } = doorOf();
  assert.equal(await enter({ authorization: `Bearer ${TOKENS.runner}` }), { kind: 'runner' });
  assert.equal(await enter({ authorization: `bearer ${TOKENS.gateway}` }), { kind: 'gateway' });
  const fault = await faultOf(enter({ authorization: `Bearer ${TOKENS.runner}x` }));
  assert.is(fault.reason, 'API_KEY_INVALID');
  assert.is(asked.times, 0);
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

test.run();
