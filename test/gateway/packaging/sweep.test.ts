/** Earlier versions are removed after a month without a start, unless they run. */
import { spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { equal, is } from 'uvu/assert';
import { sweep, touch } from '../../../gateway/packaging/sweep.ts';
import { tempDirectory, writeTree } from '../../support/temp.ts';

const DAY_MS = 24 * 3_600_000;
const NOW = Date.UTC(2026, 0, 1);
const OLD = '0.1.0-0123456789abcdef';
const NEW = '0.2.0-0123456789abcdef';
const test = suite('gateway/packaging/sweep');

test('an unused version and a partial one are removed, all else is kept', async () => {
  await using dir = tempDirectory();
  const ages = { [OLD]: 31, [NEW]: 29, '.part-a': 1, '.part-b': 0, 'of somebody': 400 };
  for (const [name, days] of Object.entries(ages)) {
    writeTree(dir.path, { [`${name}/bin/tabern`]: '' });
    touch(join(dir.path, name), NOW - days * DAY_MS);
  }
  sweep(dir.path, NOW);
  equal(readdirSync(dir.path).sort(), ['.part-b', NEW, 'of somebody'].sort());
});

test('a running version is kept at any age', async () => {
  await using dir = tempDirectory();
  const program = join(dir.path, OLD, 'bin/tabern');
  mkdirSync(join(dir.path, OLD, 'bin'), { recursive: true });
  copyFileSync('/bin/sleep', program);
  touch(join(dir.path, OLD), NOW - 400 * DAY_MS);
  const child = spawn(program, ['600'], { stdio: 'ignore' });
  try {
    sweep(dir.path, NOW);
    is(statSync(program).isFile(), true);
  } finally {
    child.kill('SIGKILL');
  }
});

test.run();
