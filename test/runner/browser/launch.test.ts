/** However a Chrome ends, no process and no directory of it is left. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { detectHang } from '../../../runner/browser/launch.ts';
import { sweepRuns } from '../../../runner/machine/stale-runs.ts';
import { launchOne, openLab, until } from './lab.ts';

const launch = suite('runner/browser/launch');

type Run = AsyncDisposable & { runDir: string };

function makeRun(): Run {
  const runDir = mkdtempSync(join(tmpdir(), 'tabern-run-'));
  return {
    runDir,
    [Symbol.asyncDispose]: () => rm(runDir, { recursive: true, force: true }),
  };
}

/** Pids whose environment or command line names the directory; a zombie has neither. */
function pidsOf(text: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => read(`/proc/${pid}/cmdline`).includes(text))
    .map(Number);
}

/** Pids of a jail: those below the bwraps that name the directory. */
function treeOf(text: string): number[] {
  const found = new Set(pidsOf(text));
  let before = -1;
  while (found.size > before) {
    before = found.size;
    for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
      const parent = /\) \S (\d+)/.exec(read(`/proc/${name}/stat`))?.[1];
      if (found.has(Number(parent))) found.add(Number(name));
    }
  }
  return [...found];
}

function isAlive(pid: number): boolean {
  const state = /\) (\S)/.exec(read(`/proc/${pid}/stat`))?.[1];
  return state !== undefined && state !== 'Z' && state !== 'X';
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // gone meanwhile
  }
}

launch('a closed Chrome leaves no process and no directory', async () => {
  await using run = makeRun();
  const chrome = await launchOne({ runDir: run.runDir, allow: [] });
  const pids = treeOf(chrome.dir);
  assert.ok(pids.length >= 5, `a whole tree: ${pids.length}`);
  await chrome.close();
  assert.equal((await chrome.exited).code, 0);
  assert.equal(readdirSync(run.runDir), []);
  await until(() => !pids.some(isAlive), 'every process has ended');
});

launch('a jailed Chrome is not root and holds its own sandbox', async () => {
  await using lab = await openLab({ allow: [] });
  const renderers = (): number[] =>
    treeOf(lab.chrome.dir).filter((pid) => {
      return read(`/proc/${pid}/cmdline`).includes('--type=renderer');
    });
  // ours is one; a renderer that has just been forked puts on Chrome's own a moment later
  const isFiltered = (pid: number) =>
    /^Seccomp_filters:\s+[2-9]/m.test(read(`/proc/${pid}/status`));
  await until(() => renderers().length > 0 && renderers().every(isFiltered), 'filtered renderers');
  for (const pid of renderers()) assert.not.match(read(`/proc/${pid}/status`), /^Uid:\s+0\s/m);
});

launch('the directory of a killed Chrome is removed', async () => {
  await using run = makeRun();
  const chrome = await launchOne({ runDir: run.runDir, allow: [] });
  const main = treeOf(chrome.dir).filter((pid) => {
    const words = read(`/proc/${pid}/cmdline`); // a zygote's has blanks instead of NULs
    return words.startsWith('/usr/lib/chromium/') && !words.includes('--type=');
  });
  assert.is(main.length, 1);
  process.kill(main[0] ?? 0, 'SIGKILL');
  assert.not.equal(await chrome.exited, { code: 0, signal: null });
  assert.equal(readdirSync(run.runDir), []);
});

launch('a Chrome ends with its killed runner, and the sweep removes its directory', async () => {
  await using run = makeRun();
  const script = join(import.meta.dirname, 'orphan.ts');
  const runner = spawn(process.execPath, [script, run.runDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const dir = await new Promise<string>((resolve) => {
    runner.stdout.on('data', (text) => resolve(String(text).trim()));
  });
  const pids = treeOf(dir);
  assert.ok(pids.length >= 5, `a whole tree: ${pids.length}`);
  assert.equal(await sweepRuns(run.runDir), [], 'a living runner is not swept');
  runner.kill('SIGKILL');
  await until(() => !pids.some(isAlive), 'every process has ended');
  assert.ok(existsSync(dir));
  assert.is((await sweepRuns(run.runDir)).length, 1);
  assert.equal(readdirSync(run.runDir), []);
});

launch('an engine that is not a Chrome fails the launch and leaves nothing', async () => {
  await using run = makeRun();
  const failed = await launchOne({ runDir: run.runDir, allow: [], program: '/usr/bin/true' }).then(
    () => 'launched',
    String,
  );
  assert.match(failed, /did not start.*it said/s);
  assert.equal(readdirSync(run.runDir), []);
});

launch('six timeouts in a row are a hang, five are not', async () => {
  const answers = [true, ...Array<boolean>(5).fill(false), true];
  let hangs = 0;
  let asked = 0;
  const stop = detectHang(
    {
      isPaused: false,
      bytesReceived: 0,
      call: async () => {
        const isAnswered = answers[asked] ?? false;
        asked += 1;
        if (!isAnswered) throw new Error('silent');
        return {};
      },
    },
    () => {
      hangs += 1;
    },
    5,
  );
  await until(() => hangs === 1, 'a hang');
  assert.is(asked, 13);
  stop();
});

launch('a Chrome whose pipe is paused does not hang', async () => {
  let asked = 0;
  const deaf = {
    isPaused: true,
    bytesReceived: 0,
    call: async () => {
      asked += 1;
      throw new Error('silent');
    },
  };
  const stop = detectHang(deaf, () => assert.unreachable('a hang'), 5);
  await until(() => asked > 8, 'some silences');
  stop();
});

launch('a Chrome whose response is behind a long message does not hang', async () => {
  let asked = 0;
  const busy = {
    isPaused: false,
    bytesReceived: 0,
    call: async () => {
      asked += 1;
      busy.bytesReceived += 65_536;
      throw new Error('silent');
    },
  };
  const stop = detectHang(busy, () => assert.unreachable('a hang'), 5);
  await until(() => asked > 8, 'some silences');
  stop();
});

launch.run();
