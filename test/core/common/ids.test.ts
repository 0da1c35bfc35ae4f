import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isId, newId } from '../../../core/common/ids.ts';

const test = suite('core/common/ids');

test('an id is a UUID v7 of its time', () => {
  const at = Date.now() + 1_000;
  const id = newId(at);
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.is(Number.parseInt(id.replace('-', '').slice(0, 12), 16), at);
});

test('ids sort in order of creation, also within a millisecond and if the clock goes back', () => {
  const at = Date.now() + 2_000;
  const ids = Array.from({ length: 20_000 }, (_, i) => newId(i < 10_000 ? at : at - 5));
  assert.equal([...ids].sort(), ids);
  assert.is(new Set(ids).size, ids.length);
});

test('only UUIDs are ids', () => {
  assert.ok(isId('0190a0b0-1111-4222-8333-123456789abc'));
  assert.ok(isId('0190A0B0-1111-4222-8333-123456789ABC'));
  for (const text of ['', 'x', '0190a0b0111142228333123456789abc', `${newId()}\n`, `${newId()}a`]) {
    assert.not(isId(text), JSON.stringify(text));
  }
});

test.run();
