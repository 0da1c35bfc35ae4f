/** What dead runners left is removed; what living ones hold is not. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makeRunDir, sweepRuns } from '../../runner/sweep.ts';

const sweep = suite('runner/sweep');

function makeRoot(): AsyncDisposable & { root: string } {
  const root = mkdtempSync(join(tmpdir(), 'tabern-sweep-'));
  return { root, [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }) };
}

sweep('a missing root is an empty one', async () => {
  assert.equal(await sweepRuns('/no/such/root'), []);
});

sweep('the directory of a process that lives stays', async () => {
  await using lab = makeRoot();
  const dir = await makeRunDir(lab.root);
  assert.equal(await sweepRuns(lab.root), []);
  assert.ok(existsSync(dir));
});

sweep('a pid that another process got now does not save a directory', async () => {
  await using lab = makeRoot();
  const dir = join(lab.root, `${process.pid}-1`);
  mkdirSync(join(dir, 'chrome-1'), { recursive: true });
  writeFileSync(join(dir, 'chrome-1', 'x'), '');
  assert.equal(await sweepRuns(lab.root), [dir]);
  assert.not(existsSync(dir));
});

sweep('a process that names the directory is ended, another is not', async () => {
  await using lab = makeRoot();
  const dir = join(lab.root, '999999999-1');
  mkdirSync(dir);
  const wait = ['-e', 'setInterval(() => {}, 1000)'];
  const left = spawn(process.execPath, [...wait, join(dir, 'chrome-1')]);
  const other = spawn(process.execPath, [...wait, `${dir}9/x`]);
  await Promise.all([left, other].map((child) => new Promise((go) => child.on('spawn', go))));
  const ended = new Promise((resolve) => left.on('exit', (_, signal) => resolve(signal)));
  await sweepRuns(lab.root);
  assert.is(await ended, 'SIGKILL');
  assert.is(other.exitCode, null);
  other.kill('SIGKILL');
});

sweep('what is not a run directory is left alone', async () => {
  await using lab = makeRoot();
  mkdirSync(join(lab.root, 'notes'));
  assert.equal(await sweepRuns(lab.root), []);
  assert.ok(existsSync(join(lab.root, 'notes')));
});

sweep.run();
