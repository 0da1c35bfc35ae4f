/** The CSV of the console: what a spreadsheet must not read as a formula. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { csvOf } from '../../../gateway/web/console/pages/usage/csv.ts';

const test = suite('gateway/web/console-csv');

test('cells are quoted where they must be, and numbers stay numbers', () => {
  const rows = [
    ['day', 'runs'],
    ['a,b', 3],
    ['say "x"', -1.5],
    ['two\r\nlines', 0],
  ] as const;
  assert.is(csvOf(rows), 'day,runs\r\n"a,b",3\r\n"say ""x""",-1.5\r\n"two\r\nlines",0\r\n');
});

test('a text that a spreadsheet would run is a text', () => {
  for (const text of ['=1+1', '+1', '-1', '@a', '\tx']) {
    assert.is(csvOf([[text]]), `'${text}\r\n`);
  }
  assert.is(csvOf([['=a,b']]), `"'=a,b"\r\n`);
});

test.run();
