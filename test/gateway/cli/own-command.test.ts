/** How a printed command calls this program. */
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ownCommand } from '../../../gateway/cli/own-command.ts';
import { tempDirectory } from '../../support/temp.ts';

const LAUNCHER = join(import.meta.dirname, '../../../gateway/tabern.js');
/** Of a checkout: `node gateway/tabern.js`. */
const ARGV = ['node', LAUNCHER];
const test = suite('gateway/cli/own-command');

/** Folders of PATH, each with a `tabern`. */
function folders(root: string) {
  const at = (name: string, make: (path: string) => void): string => {
    const folder = join(root, name);
    mkdirSync(folder, { recursive: true });
    make(join(folder, 'tabern'));
    return folder;
  };
  return {
    own: at('own', (path) => symlinkSync(LAUNCHER, path)),
    other: at('other', (path) => writeFileSync(path, '', { mode: 0o755 })),
    ofNpm: at('node_modules/.bin', (path) => symlinkSync(LAUNCHER, path)),
  };
}

test('it is called by its name where PATH has it', async () => {
  await using dir = tempDirectory();
  const { own, ofNpm } = folders(dir.path);
  const path = ['/nonexistent', ofNpm, own].join(delimiter);
  assert.is(ownCommand({ path }, ARGV), 'tabern');
  assert.is(ownCommand({ path, cwd: dir.path }, ARGV), 'tabern');
});

test('it is called by its path where PATH has none, another one, or that of npm only', async () => {
  await using dir = tempDirectory();
  const { own, other, ofNpm } = folders(dir.path);
  const byPath = `node ${LAUNCHER}`;
  for (const path of ['', '/nonexistent', other, ofNpm, 'own', [other, own].join(delimiter)]) {
    assert.is(ownCommand({ path }, ARGV), byPath, path);
  }
  const cwd = join(LAUNCHER, '../..');
  assert.is(ownCommand({ path: '', cwd }, ARGV), 'node gateway/tabern.js');
  assert.is(ownCommand({ path: '', cwd: join(cwd, 'gateway') }, ARGV), 'node ./tabern.js');
});

test('the executable is called by its own path, quoted for a shell', async () => {
  await using dir = tempDirectory();
  const folder = join(dir.path, "Ann's files");
  mkdirSync(folder);
  const program = join(folder, 'tabern');
  writeFileSync(program, '');
  chmodSync(program, 0o755);
  const argv = [program, join(dir.path, 'cache/gateway/tabern.js')];
  assert.is(ownCommand({ path: '' }, argv), `'${dir.path}/Ann'\\''s files/tabern'`);
  assert.is(ownCommand({ path: '', cwd: folder }, argv), './tabern');
  assert.is(ownCommand({ path: folder }, argv), 'tabern');
});

test.run();
