/** Text of tenants: what of it reaches a terminal, and what a pipe. */
import { PassThrough } from 'node:stream';
import { WriteStream } from 'node:tty';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { plain, styled, tenantText } from '../../../proto/terminal/text.ts';

const test = suite('proto/terminal/text');
const ESC = '\u001b';
const BAD = '\u{fffd}';
const RESET = `${ESC}[0m`;
const terminal = Object.assign(new PassThrough(), { isTTY: true });
const pipe = new PassThrough();

// the tester's would change what is shown
delete process.env['NO_COLOR'];
delete process.env['FORCE_COLOR'];

const STACK = `RangeError: ${ESC}[31mred${ESC}[39m\r\n\tat index.ts:1\n    at b`;

test('colours, line breaks and tabs pass to a terminal; a pipe has no colours', () => {
  assert.is(
    tenantText(STACK, terminal),
    `RangeError: ${ESC}[31mred${ESC}[39m\n\tat index.ts:1\n    at b${RESET}`,
  );
  assert.is(tenantText(STACK, pipe), 'RangeError: red\n\tat index.ts:1\n    at b');
  assert.is(tenantText('no colour', terminal), 'no colour');
  assert.is(styled('red', 'ours', terminal), `${ESC}[31mours${ESC}[39m`);
  assert.is(styled('red', 'ours', pipe), 'ours');
});

for (const style of [
  '0',
  '1;31',
  '2',
  '4',
  '38;5;208',
  '38;5;41',
  '38;2;41;42;43;97',
  '24;39;49',
]) {
  test(`the style "${style}" passes`, () => {
    assert.is(tenantText(`${ESC}[${style}mx`, terminal), `${ESC}[${style}mx${RESET}`);
  });
}

for (const style of ['8', '5', '7', '31;8', '38;8', '99', '1;1;6', '38;5', ';8', '41', '107']) {
  test(`the style "${style}" does not pass`, () => {
    assert.is(tenantText(`${ESC}[${style}mx`, terminal), 'x');
  });
}

for (const [style, shown] of [
  ['', '0'],
  ['31;41', '31'],
  ['48;5;31;1', '1'],
  ['48;2;1;2;3;97;103', '97'],
  ['0;100', '0'],
]) {
  test(`the style "${style}" passes as "${shown}", without its background`, () => {
    assert.is(tenantText(`${ESC}[${style}mx`, terminal), `${ESC}[${shown}mx${RESET}`);
  });
}

test('FORCE_COLOR colours a pipe too; NO_COLOR leaves a terminal plain', () => {
  const tty = Object.assign(new PassThrough(), {
    isTTY: true,
    getColorDepth: WriteStream.prototype.getColorDepth,
  });
  try {
    process.env['FORCE_COLOR'] = '1';
    assert.is(styled('red', 'ours', pipe), `${ESC}[31mours${ESC}[39m`);
    assert.is(tenantText(`${ESC}[31mx`, pipe), `${ESC}[31mx${RESET}`);
    delete process.env['FORCE_COLOR'];
    process.env['NO_COLOR'] = '1';
    assert.is(styled('red', 'ours', tty), 'ours');
    assert.is(tenantText(`${ESC}[31mx`, tty), 'x');
  } finally {
    delete process.env['FORCE_COLOR'];
    delete process.env['NO_COLOR'];
  }
});

for (const [what, text, shown] of [
  ['a title', `${ESC}]0;evil\u0007`, `${BAD}]0;evil${BAD}`],
  ['a link', `${ESC}]8;;http://x${ESC}\\`, `${BAD}]8;;http://x${BAD}\\`],
  ['a move of the cursor', `${ESC}[2A${ESC}[2K`, `${BAD}[2A${BAD}[2K`],
  ['a clear', `${ESC}[2J${ESC}[H${ESC}c`, `${BAD}[2J${BAD}[H${BAD}c`],
  ['a private mode', `${ESC}[?1049h`, `${BAD}[?1049h`],
  ['a key', `${ESC}[>4;1m`, `${BAD}[>4;1m`],
  ['a report', `${ESC}[6n${ESC}[c`, `${BAD}[6n${BAD}[c`],
  ['C1', '\u009b31m\u009d0;x\u009c', `${BAD}31m${BAD}0;x${BAD}`],
  ['a return', 'ok\rbad\b\u0000\u007f', `ok${BAD}bad${BAD}${BAD}${BAD}`],
  ['an override', 'a\u202etxt.exe\u2066b', `a${BAD}txt.exe${BAD}b`],
  ['an invisible one', 'a\u200bb\u2060c\ufeff\u2028\u061c', `a${BAD}b${BAD}c${BAD}${BAD}${BAD}`],
  ['a nested one', `${ESC}${ESC}[31m[2J`, `${BAD}${ESC}[31m[2J${RESET}`],
] as const) {
  test(`${what} does not pass`, () => {
    assert.is(tenantText(text, terminal), shown);
    assert.not.ok(tenantText(text, pipe).includes(ESC));
    assert.not.match(plain(text), /[^\P{Cc}\t]/u);
  });
}

test('a name has one line', () => {
  assert.is(plain(`a${ESC}[31mb\nc\td`), `a${BAD}[31mb${BAD}c\td`);
});

test('the joiners of emoji and of Persian pass', () => {
  const text = '\u{1f469}\u200d\u{1f4bb} \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645';
  assert.is(plain(text), text);
  assert.is(tenantText(text, terminal), text);
});

test.run();
