/** Progress on a terminal, and in a pipe. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openProgress, openSpinner } from '../../../proto/terminal/progress.ts';
import { until } from '../../support/poll.ts';

const test = suite('proto/terminal/progress');

function screen(isTTY: boolean) {
  const parts: string[] = [];
  return { parts, isTTY, write: (text: string) => parts.push(text) };
}

test('a pipe has a line for each tenth, a terminal a bar that ends full', () => {
  const pipe = screen(false);
  const lines = openProgress('read', 10_000, pipe);
  for (let n = 0; n < 100; n += 1) lines.add(100);
  lines.end();
  assert.is(pipe.parts.length, 10);
  assert.is(pipe.parts[4], 'read 5.0 kB of 10 kB\n');
  const shown = screen(true);
  const bar = openProgress('read', 10_000, shown);
  bar.add(2_500);
  bar.add(7_500);
  bar.end();
  assert.is(shown.parts[0]?.startsWith('\rread ['), true);
  assert.match(shown.parts.join(''), /\rread \[={30}\] 100 % 10 kB of 10 kB *\n$/);
});

test('a spinner turns after a second, gives way to lines, and leaves nothing', async () => {
  const shown = screen(true);
  {
    using spinner = openSpinner('building', shown);
    assert.equal(shown.parts, [], 'not at once');
    await until(() => shown.parts.length >= 3);
    assert.equal(shown.parts.slice(0, 3), ['\r| building', '\r/ building', '\r- building']);
    spinner.pause();
    assert.is(shown.parts.at(-1), `\r${' '.repeat(10)}\r`);
    const count = shown.parts.length;
    await until(() => shown.parts.length > count);
  }
  assert.is(shown.parts.at(-1), `\r${' '.repeat(10)}\r`);
});

test('a pipe has no spinner', async () => {
  const pipe = screen(false);
  const shown = screen(true);
  {
    using spinner = openSpinner('building', pipe);
    using _ = openSpinner('building', shown);
    await until(() => shown.parts.length > 0);
    spinner.pause();
  }
  assert.equal(pipe.parts, []);
});

test.run();
