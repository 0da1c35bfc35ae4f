/** Messages are bounded before the SDK reads them; parts of texts are whole characters. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readMessage } from '../../../../gateway/routes/mcp/message.ts';
import {
  firstPart,
  lastPart,
  line,
  TEXT_MAX_CHARS,
} from '../../../../gateway/routes/mcp/short-text.ts';

const test = suite('gateway/routes/mcp/message');
const many = (count: number) => Array.from({ length: count }, () => 0);

test('arguments are taken out of the envelope, whatever they are', () => {
  for (const given of [{ a: 1 }, null, 5, many(10_000)]) {
    const body = { jsonrpc: '2.0', params: { name: 'x', arguments: given } };
    assert.equal(readMessage(body), {
      envelope: { jsonrpc: '2.0', params: { name: 'x' } },
      given,
    });
  }
});

test('of the rest there are at most 200 values', () => {
  // the object, params and its list
  assert.equal(readMessage({ params: { x: many(197) } }).given, undefined);
  for (const body of [{ params: { x: many(198) } }, { x: many(199) }, { params: many(199) }]) {
    assert.throws(() => readMessage(body), /at most 200 values/);
  }
});

test('a part ends between characters', () => {
  const rest = (next: number) => `next ${next}`;
  const whole = `${'x'.repeat(TEXT_MAX_CHARS - 1)}🙂${'y'.repeat(10)}`;
  const first = firstPart(whole, { rest });
  assert.ok(first.isWellFormed() && first.includes(`next ${TEXT_MAX_CHARS - 1}`), first.slice(-80));
  const second = firstPart(whole, { rest, offset: TEXT_MAX_CHARS - 1 });
  assert.ok(second.startsWith(`🙂${'y'.repeat(10)}\n\n[characters`), second);
  assert.is(firstPart('abc', { rest, offset: 3 }), '[The text has 3 characters.]');
  assert.is(firstPart('', { rest }), '');
  assert.ok(lastPart(`🙂${'y'.repeat(TEXT_MAX_CHARS - 1)}`, 'rest').isWellFormed());
  assert.is(line('🙂🙂', 3), '🙂…');
});

test.run();
