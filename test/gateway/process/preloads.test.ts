/** Which of a process's flags preload, wherever they were given. */
import { execFileSync } from 'node:child_process';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { preloads } from '../../../gateway/process/preloads.ts';

const test = suite('gateway/process/preloads');

test('only preload flags are passed on', () => {
  const given = [
    '--inspect',
    '--import',
    './a.js',
    '--require=./b.cjs',
    '-r',
    './c.cjs',
    '-e',
    '1',
  ];
  const found = ['--import', './a.js', '--require', './b.cjs', '-r', './c.cjs'];
  assert.equal(preloads(given), found);
  assert.equal(preloads([], '--max-old-space-size=64 --import=./a.js  -r ./b.cjs'), [
    ...['--import', './a.js', '-r', './b.cjs'],
  ]);
  assert.equal(preloads(['--import', './b.js'], '--import ./a.js'), [
    ...['--import', './a.js', '--import', './b.js'],
  ]);
  assert.equal(preloads([], ''), []);
  assert.equal(preloads(['--import']), [], 'node itself refuses it');
});

test('NODE_OPTIONS is read as node reads it', () => {
  const said = 'data:text/javascript,console.log("a \\\\ b")';
  const options = `--import "${said.replaceAll(/["\\]/g, '\\$&')}"`;
  const run = (words: string[], env: Record<string, string>) =>
    execFileSync(process.execPath, [...words, '-e', ''], { env, encoding: 'utf8' });
  const heard = run([], { NODE_OPTIONS: options });
  assert.is(heard, 'a \\ b\n');
  assert.is(run(preloads([], options), {}), heard);
});

test.run();
