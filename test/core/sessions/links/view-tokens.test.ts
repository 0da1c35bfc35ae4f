/** A view token opens its session until it expires; anything else opens nothing. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../../core/common/ids.ts';
import { sealerOf } from '../../../../core/common/sealer.ts';
import { viewTokens } from '../../../../core/sessions/live-view.ts';
import { Fault } from '../../../../proto/rpc/errors.ts';

const test = suite('core/sessions/view-tokens');
const sealer = sealerOf(Buffer.alloc(32, 7));
const EXPIRES_AT = new Date(1_800_000_000_123);

test('a view token contains its session and its expiry', () => {
  const tokens = viewTokens(sealer, () => EXPIRES_AT.getTime() - 1);
  const view = { sessionId: newId(), expiresAt: EXPIRES_AT };
  assert.equal(tokens.read(tokens.of(view)), view);
});

test('a view token contains the requesting API key', () => {
  const tokens = viewTokens(sealer, () => 0);
  const view = { sessionId: newId(), expiresAt: EXPIRES_AT, keyId: 'abcdef01' };
  assert.equal(tokens.read(tokens.of(view)), view);
});

test('a read-only view token is read-only, and no change makes it another', () => {
  const tokens = viewTokens(sealer, () => 0);
  const view = { sessionId: newId(), expiresAt: EXPIRES_AT, keyId: 'abcdef01' };
  const [full, readOnly] = [tokens.of(view), tokens.of({ ...view, isReadOnly: true })];
  assert.equal(tokens.read(readOnly), { ...view, isReadOnly: true });
  assert.equal(tokens.read(full), view);
  // the same body: only the signature tells them apart
  assert.is(full.slice(0, 42), readOnly.slice(0, 42));
  assert.is.not(full.slice(43), readOnly.slice(43));
});

test('the token of a handoff names it, and no change makes it a token of the session', () => {
  const tokens = viewTokens(sealer, () => 0);
  const view = { sessionId: newId(), expiresAt: EXPIRES_AT, keyId: 'abcdef01', handoffId: newId() };
  const token = tokens.of(view);
  assert.equal(tokens.read(token), view);
  const bytes = Buffer.from(token, 'base64url');
  const without = Buffer.concat([bytes.subarray(0, 32), bytes.subarray(48)]);
  assert.is(tokens.read(without.toString('base64url')), undefined);
});

test('a view token is refused from its expiry on', () => {
  let now = EXPIRES_AT.getTime() - 1;
  const tokens = viewTokens(sealer, () => now);
  const token = tokens.of({ sessionId: newId(), expiresAt: EXPIRES_AT });
  tokens.read(token);
  now += 1;
  assert.throws(
    () => tokens.read(token),
    (error: unknown) => error instanceof Fault && error.reason === 'URL_EXPIRED',
  );
});

test('a view token with one character changed, removed or added is refused', () => {
  const tokens = viewTokens(sealer, () => 0);
  const token = tokens.of({ sessionId: newId(), expiresAt: EXPIRES_AT });
  const wrong = ['', 'x', token.slice(0, -1), `${token}A`, `${token} `, `${token}\n`];
  for (let at = 0; at < token.length; at++) {
    const other = token[at] === 'A' ? 'B' : 'A';
    wrong.push(token.slice(0, at) + other + token.slice(at + 1));
  }
  for (const text of wrong) assert.is(tokens.read(text), undefined, text);
});

test('a view token of another master key is refused', () => {
  const tokens = viewTokens(sealer, () => 0);
  const strangers = viewTokens(sealerOf(Buffer.alloc(32, 8)), () => 0);
  const token = strangers.of({ sessionId: newId(), expiresAt: EXPIRES_AT });
  assert.is(tokens.read(token), undefined);
});

test.run();
