/**
 * `node test/bench/functions/hosts.ts [runs]`: the cost of function hosts, without Chrome and core.
 * Measures the claim of a spare host, a run on a warm thread and on a new host, a hundred runs of a
 * 200 ms handler on the four threads of a host, and the load of playwright-core, each beside its
 * baseline in the same run: a node child. Read the ratios.
 */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Bundle } from '../../../runner/functions/bundle-cache.ts';
import { HostPool } from '../../../runner/functions/host-pool.ts';
import { node } from '../../../runner/functions/runtime.ts';
import { openJail } from '../../../runner/jail/open.ts';
import { log, moduleOf, openYard, type Yard } from '../../runner/host/bundle.ts';
import { bundle } from '../../support/runner/bundle.ts';
import { tempDirectory } from '../../support/temp.ts';
import { quantile, show, timed } from '../support/figures.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const RUNS = Number(process.argv[2] ?? 50);
/** Each needs a separate host. */
const CLAIMS = Math.max(3, Math.round(RUNS / 5));
/** The pause between two claims, in start times of this machine: by then a spare is ready. */
const SPARE_STARTS = 4;
/** The defaults of a host and of a runner. */
const LANES = 4;
const HANDLER_MS = 200;
const AT_ONCE = 100;
/** No earlier run holds a thread. */
const FREE = { signal: new AbortController().signal, onWait: (): void => undefined };
const IMPORTS = `import 'playwright-core'; import { defineFn } from 'tabern';
defineFn('f', async () => 1);`;

const startMs = await claims();
{
  await using yard = await openYard('auto', { spares: 1 });
  const trivial = await yard.bundle(moduleOf('f: async () => 1'));
  const plain = await timed(CLAIMS, () => child(''));
  await run(yard, trivial);
  const warm = await timed(RUNS, () => run(yard, trivial));
  show('a run on a warm thread', warm, plain);
  const cold = await spaced(yard, trivial, 'cold');
  show('a first run on a spare host', cold, plain);
  show('by hand: a node child that does nothing', plain);
  await atOnce(yard);
  await loads(yard);
}

/** Returns the start time of a host, in milliseconds. */
async function claims(): Promise<number> {
  await using dir = tempDirectory();
  const jail = await openJail({ sandbox: 'auto', log });
  const pool = new HostPool({ jail, runtime: node(), runDir: dir.path, spares: 1, log });
  try {
    const started = await timed(1, async () => void (await pool.of('first', FREE)));
    const took: number[] = [];
    for (let claim = 0; claim < CLAIMS; claim += 1) {
      await pause(SPARE_STARTS * quantile(started, 1));
      took.push(...(await timed(1, async () => void (await pool.of(`project-${claim}`, FREE)))));
    }
    show('claim of a spare host', took, started);
    show('start of a host, where there is no spare', started);
    return quantile(started, 1);
  } finally {
    await pool.close();
  }
}

/** First runs, each of a separate project, each on a spare. */
async function spaced(yard: Yard, module: Bundle, name: string): Promise<number[]> {
  const took: number[] = [];
  for (let claim = 0; claim < CLAIMS; claim += 1) {
    await pause(SPARE_STARTS * startMs);
    took.push(...(await timed(1, () => run(yard, module, `${name}-${claim}`))));
  }
  return took;
}

async function atOnce(yard: Yard): Promise<void> {
  const wait = `await new Promise((resolve) => setTimeout(resolve, ${HANDLER_MS}));`;
  const sleeper = await yard.bundle(moduleOf(`f: async () => { ${wait} }`));
  await inLanes(LANES, () => run(yard, sleeper, 'lanes'));
  const ideal = (AT_ONCE / LANES) * HANDLER_MS;
  const [ours = 0] = await timed(1, () => inLanes(AT_ONCE, () => run(yard, sleeper, 'lanes')));
  const [plain = 0] = await timed(1, () => inLanes(AT_ONCE, () => child(wait)));
  const ratio = (ours / ideal).toFixed(2);
  const title = `${AT_ONCE} runs of ${HANDLER_MS} ms, ${LANES} at a time`;
  console.log(`${title}: ${ours.toFixed(0)} ms = ${ratio}x of the ideal ${ideal} ms`);
  console.log(`  the same as node children: ${(plain / ideal).toFixed(2)}x of the ideal`);
}

async function inLanes(count: number, act: () => Promise<void>): Promise<void> {
  let left = count;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      await act();
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

/** A handler's module with all of playwright-core: the first run loads it, later runs do not. */
async function loads(yard: Yard): Promise<void> {
  await using dir = tempDirectory();
  const root = join(dir.path, 'project');
  mkdirSync(join(root, 'node_modules'), { recursive: true });
  const name = join('node_modules', 'playwright-core');
  cpSync(join(ROOT, name), join(root, name), { recursive: true });
  writeFileSync(join(root, 'index.ts'), IMPORTS);
  const outFile = join(dir.path, 'bundle.mjs');
  const made = await bundle({ root, entrypoint: 'index.ts', outFile });
  const module = { path: outFile, sha256: made.sha256 };
  const plain = await timed(CLAIMS, () => child(`await import('playwright-core');`));
  show(
    'with playwright-core: a first run on a spare host',
    await spaced(yard, module, 'pw'),
    plain,
  );
  await run(yard, module, 'pw-warm');
  const warm = await timed(RUNS, () => run(yard, module, 'pw-warm'));
  show('with playwright-core: a run on a warm thread', warm, plain);
  show('by hand: a node child that imports playwright-core', plain);
  console.log(`warm p50 ${quantile(warm, 0.5).toFixed(1)} ms: the module is not loaded again`);
}

async function run(yard: Yard, module: Bundle, projectId = 'warm'): Promise<void> {
  const { outcome } = await yard.run('', { bundle: module, projectId });
  if (outcome.type !== 'result') throw new Error(JSON.stringify(outcome));
}

async function child(code: string): Promise<void> {
  const words = ['--input-type=module', '-e', code];
  await promisify(execFile)(process.execPath, words, { cwd: ROOT });
}
