import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../../core/common/ids.ts';
import { sealerOf } from '../../../../core/common/sealer.ts';
import { signingKeys } from '../../../../core/sessions/signing-keys.ts';

const test = suite('core/sessions/signing-keys');

const keys = signingKeys(sealerOf(Buffer.alloc(32, 1)));

test('a signing key is deterministic and contains its session', () => {
  const [one, two] = [newId(), newId()];
  assert.is(keys.of(one), keys.of(one));
  assert.equal(keys.read(keys.of(one)), { sessionId: one });
  assert.equal(keys.read(keys.of(two)), { sessionId: two });
  assert.is.not(keys.of(one), keys.of(two));
  assert.match(keys.of(one), /^[\w-]{64}$/);
});

test('a signing key needs no escaping in a URL', () => {
  for (let n = 0; n < 100; n++) {
    const key = keys.of(newId());
    assert.is(new URLSearchParams({ key }).toString(), `key=${key}`);
  }
});

test('a signing key contains the requesting API key only', () => {
  const id = newId();
  const [one, other] = [keys.of(id, 'abcdef01'), keys.of(id, 'abcdef02')];
  assert.is.not(one, other);
  assert.equal(keys.read(one), { sessionId: id, keyId: 'abcdef01' });
  assert.match(one, /^[\w-]{75}$/);
  assert.is(keys.of(id, ''), keys.of(id));
});

for (const keyId of ['', 'abcdef01']) {
  test(`a key with any character changed is refused: ${keyId || 'without an API key'}`, () => {
    const key = keys.of(newId(), keyId);
    for (let at = 0; at < key.length; at++) {
      const other = key[at] === 'A' ? 'B' : 'A';
      assert.is(keys.read(key.slice(0, at) + other + key.slice(at + 1)), undefined, `at ${at}`);
    }
  });
}

test('text of another form is not a signing key', () => {
  const key = keys.of(newId());
  const std = Buffer.from(key, 'base64url').toString('base64');
  const wrong = ['', key.slice(1), `${key}A`, `${key}=`, ` ${key}`, `${key}\n`, newId()];
  for (const text of [...wrong, ...(std === key ? [] : [std])]) {
    assert.is(keys.read(text), undefined, JSON.stringify(text));
  }
});

test('signing keys of another data directory are refused', () => {
  const others = signingKeys(sealerOf(Buffer.alloc(32, 2)));
  assert.is(keys.read(others.of(newId())), undefined);
});

test.run();
