/** Files of dead runners are removed; files of running ones are kept. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  makeRunDir,
  makeTempDir,
  sweepRuns,
  sweepTemp,
} from '../../../runner/machine/stale-runs.ts';
import { until } from '../../support/poll.ts';

const SWEEP = new URL('../../../runner/machine/stale-runs.ts', import.meta.url).href;
const sweep = suite('runner/machine/stale-runs');

function makeRoot(): AsyncDisposable & { root: string } {
  const root = mkdtempSync(join(tmpdir(), 'tabern-sweep-'));
  return { root, [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }) };
}

sweep('a missing root is not an error', async () => {
  assert.equal(await sweepRuns('/no/such/root'), []);
});

sweep('the directory of a running process is kept', async () => {
  await using lab = makeRoot();
  const dir = await makeRunDir(lab.root);
  assert.equal(await sweepRuns(lab.root), []);
  assert.ok(existsSync(dir));
});

sweep('a reused pid does not keep a stale directory', async () => {
  await using lab = makeRoot();
  const dir = join(lab.root, `${process.pid}-1`);
  mkdirSync(join(dir, 'chrome-1'), { recursive: true });
  writeFileSync(join(dir, 'chrome-1', 'x'), '');
  assert.equal(await sweepRuns(lab.root), [dir]);
  assert.not(existsSync(dir));
});

sweep('a process with the directory in its command line is killed, another is not', async () => {
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

/** A process, with more words in its command line, which ends with the test. */
function started(words: readonly string[]) {
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  async function kill(): Promise<void> {
    child.kill('SIGKILL');
    await closed;
  }
  return { child, kill, [Symbol.asyncDispose]: kill };
}

sweep('the temporary directory of a killed process is removed at the next start', async () => {
  await using lab = makeRoot();
  const make = `import { makeTempDir } from '${SWEEP}';
    console.log(await makeTempDir('doctor', process.argv[1])); setInterval(() => {}, 1000);`;
  await using maker = started(['--input-type=module', '-e', make, lab.root]);
  const [text] = await once(maker.child.stdout, 'data');
  const path = String(text).trim();
  writeFileSync(join(path, 'profile'), '');
  const own = await makeTempDir('doctor', lab.root);
  for (const name of ['tabern-doctor-notes', 'other-doctor-1-1-abcdef']) {
    mkdirSync(join(lab.root, name));
  }
  writeFileSync(join(lab.root, 'tabern-doctor-1-1-abcdef'), 'no directory');
  assert.equal(await sweepTemp(lab.root), [], 'its process lives');
  await maker.kill();
  const wait = ['-e', 'setInterval(() => {}, 1000)', `${path}/profile`];
  await using user = started(wait);
  await once(user.child, 'spawn');
  assert.equal(await sweepTemp(lab.root), [path]);
  await until(() => user.child.signalCode === 'SIGKILL'); // what used the directory
  assert.not(existsSync(path));
  assert.ok(existsSync(own));
  assert.is(readdirSync(lab.root).length, 4);
});

sweep('a reused pid does not keep a stale temporary directory', async () => {
  await using lab = makeRoot();
  const own = await makeTempDir('doctor', lab.root);
  const before = own.replace(/-\d+-(\w{6})$/, '-1-$1');
  assert.is.not(before, own);
  mkdirSync(before);
  assert.equal(await sweepTemp(lab.root), [before]);
  assert.ok(existsSync(own));
});

sweep("a link with the name of a dead process's directory is kept", async () => {
  await using lab = makeRoot();
  await using other = makeRoot();
  symlinkSync(other.root, join(lab.root, 'tabern-doctor-999999999-1-abcdef'));
  assert.equal(await sweepTemp(lab.root), []);
  assert.ok(existsSync(other.root));
});

sweep('other directories are kept', async () => {
  await using lab = makeRoot();
  mkdirSync(join(lab.root, 'notes'));
  assert.equal(await sweepRuns(lab.root), []);
  assert.ok(existsSync(join(lab.root, 'notes')));
});

sweep.run();
