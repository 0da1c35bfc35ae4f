/** Bytes for people. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sizeText } from '../../../proto/terminal/size.ts';

const test = suite('proto/terminal/size');

for (const [bytes, text] of [
  [0, '0 B'],
  [999, '999 B'],
  [1_000, '1.0 kB'],
  [1_234, '1.2 kB'],
  [9_960, '10 kB'],
  [999_499, '999 kB'],
  [999_600, '1.0 MB'],
  [26_214_400, '26 MB'],
  [1e9, '1.0 GB'],
  [10_737_418_240, '11 GB'],
  [5e15, '5000 TB'],
] as const) {
  test(`${bytes} is ${text}`, () => assert.is(sizeText(bytes), text));
}

test.run();
