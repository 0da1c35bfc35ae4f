/** What dead runners left is removed; what living ones hold is not. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makeRunDir, makeTempDir, sweepRuns, sweepTemp } from '../../runner/sweep.ts';

const SWEEP = new URL('../../runner/sweep.ts', import.meta.url).href;
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

sweep('a temporary directory of a process that was killed goes at the next start', async () => {
  await using lab = makeRoot();
  const make = `import { makeTempDir } from '${SWEEP}';
    console.log(await makeTempDir('doctor', process.argv[1])); setInterval(() => {}, 1000);`;
  const words = ['--input-type=module', '-e', make, lab.root];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  const path = await new Promise((said) =>
    child.stdout.once('data', (text) => said(`${text}`.trim())),
  );
  writeFileSync(join(String(path), 'profile'), '');
  const own = await makeTempDir('doctor', lab.root);
  for (const name of ['tabern-doctor-notes', 'other-doctor-1-1-abcdef']) {
    mkdirSync(join(lab.root, name));
  }
  writeFileSync(join(lab.root, 'tabern-doctor-1-1-abcdef'), 'no directory');
  assert.equal(await sweepTemp(lab.root), [], 'its process lives');
  child.kill('SIGKILL');
  await once(child, 'close');
  assert.equal(await sweepTemp(lab.root), [path]);
  assert.not(existsSync(String(path)));
  assert.ok(existsSync(own));
  assert.is(readdirSync(lab.root).length, 4);
});

sweep('what is not a run directory is left alone', async () => {
  await using lab = makeRoot();
  mkdirSync(join(lab.root, 'notes'));
  assert.equal(await sweepRuns(lab.root), []);
  assert.ok(existsSync(join(lab.root, 'notes')));
});

sweep.run();
