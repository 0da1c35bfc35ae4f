/** Tables of the commands: a tenant's words are cells like others. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { columns } from '../../../proto/common/text-table.ts';

const test = suite('proto/common/text-table');
const ESC = '\u001b';

/** The table as a terminal shows it. */
function coloured(head: readonly string[], rows: readonly (readonly unknown[])[]): string[] {
  const { FORCE_COLOR, NO_COLOR } = process.env;
  try {
    delete process.env['NO_COLOR'];
    process.env['FORCE_COLOR'] = '1';
    return columns(head, rows).split('\n').slice(1);
  } finally {
    if (FORCE_COLOR === undefined) delete process.env['FORCE_COLOR'];
    else process.env['FORCE_COLOR'] = FORCE_COLOR;
    if (NO_COLOR !== undefined) process.env['NO_COLOR'] = NO_COLOR;
  }
}

for (const word of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
  test(`a function or a status named ${word} is printed`, () => {
    assert.equal(coloured(['NAME', 'STATUS'], [[word, word]]), [`${word}  ${word}`]);
  });
}

test('only the column STATUS is coloured', () => {
  const rows = [['FAILED', 'FAILED', 'b']];
  assert.equal(coloured(['NAME', 'STATUS', 'ID'], rows), [`FAILED  ${ESC}[31mFAILED${ESC}[39m  b`]);
});

test('a row ends without blanks, and is one line', () => {
  const rows = [
    ['a', 'b  '],
    ['long', 'c\td\ne\u202ef'],
    ['', null],
  ];
  const text = columns(['A', 'B'], rows).split('\n').slice(1);
  assert.equal(text, ['a     b', 'long  c d\u{fffd}e\u{fffd}f', '-     -']);
});

test.run();
