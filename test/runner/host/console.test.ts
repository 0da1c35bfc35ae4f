/** A run's log: lines and limits. The replaced console is tested in hosts.test.ts. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LineSink } from '../../../runner/host/console.ts';
import {
  LINE_MAX_BYTES,
  type LogLine,
  MARKER,
  RUN_MAX_BYTES,
} from '../../../runner/host/messages.ts';
import { openMask } from '../../../runner/host/secrets.ts';
import { cutToBytes } from '../../../runner/host/text.ts';

const test = suite('runner/host/console');

function sink(): { log: LineSink; lines: LogLine[]; messages: () => string[] } {
  const lines: LogLine[] = [];
  const log = new LineSink((line) => lines.push(line), openMask({}));
  return { log, lines, messages: () => lines.map(({ message }) => message) };
}

test('text is split into lines; an incomplete line waits for its line break or the end', () => {
  const { log, messages } = sink();
  log.write('stdout', 'log', 'a\r\nb\n\nc');
  assert.equal(messages(), ['a', 'b', '']);
  log.write('stdout', 'log', 'd\ne');
  assert.equal(messages(), ['a', 'b', '', 'cd']);
  log.close();
  assert.equal(messages(), ['a', 'b', '', 'cd', 'e']);
});

test('incomplete lines of the two streams are not mixed', () => {
  const { log, messages } = sink();
  log.write('stdout', 'log', 'out');
  log.write('stderr', 'error', 'err\n');
  log.write('stdout', 'log', 'put\n');
  assert.equal(messages(), ['err', 'output']);
});

test('output after the end is ignored', () => {
  const { log, messages } = sink();
  log.close();
  log.write('stdout', 'log', 'late\n');
  assert.equal(messages(), []);
});

test('a long line is truncated to 64 KiB at a character boundary', () => {
  const { log, messages } = sink();
  log.write('stdout', 'log', `${'€'.repeat(30_000)}\n`);
  const bytes = Buffer.byteLength(messages()[0] ?? '');
  assert.ok(bytes <= LINE_MAX_BYTES && bytes > LINE_MAX_BYTES - 3, `${bytes}`);
  assert.not.match(messages()[0] ?? '', /\uFFFD/);
});

test('an endless line is limited to 64 KiB', () => {
  const { log, messages } = sink();
  for (let i = 0; i < 40; i++) log.write('stdout', 'log', 'x'.repeat(10_000));
  log.close();
  assert.equal(
    messages().map((message) => message.length),
    [LINE_MAX_BYTES],
  );
});

test('a flood of empty lines ends with one marker', () => {
  const { log, lines, messages } = sink();
  log.write('stdout', 'log', '\n'.repeat(200_000));
  log.close();
  assert.is(lines.length, RUN_MAX_BYTES / 16 + 1);
  assert.is(messages().at(-1), MARKER);
});

test('cutToBytes returns the longest prefix that fits', () => {
  assert.is(cutToBytes('abc', 3), 'abc');
  assert.is(cutToBytes('abcd', 3), 'abc');
  assert.is(cutToBytes('aé', 2), 'a');
});

test.run();
