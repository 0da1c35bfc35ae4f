/**
 * `node test/bench/load.ts [threads]`: the processor time of a thread until its handler has run,
 * with playwright-core in its bundle: the first thread of a host, the next ones, which use the code
 * that the first has compiled, and a run on a thread that has loaded it. Read the ratios. Deno
 * reports its times in steps of 10 ms.
 */
import { join } from 'node:path';
import type { Bundle } from '../../runner/functions/bundle-cache.ts';
import { findRuntime, type Runtime } from '../../runner/functions/runtime.ts';
import { moduleOf, openYard, type Yard } from '../runner/host/bundle.ts';
import { bundle } from '../support/runner/bundle.ts';
import { quantile } from './support/figures.ts';

const THREADS = Number(process.argv[2] ?? 9);
const REPOSITORY = join(import.meta.dirname, '../..');
const ENTRY = 'test/support/projects/engines/cpu.ts';

for (const kind of ['node', 'deno'] as const) {
  const runtime = await findRuntime(kind, {});
  const empty = await threads(runtime, async (yard) =>
    yard.bundle(moduleOf('f: async () => process.threadCpuUsage()')),
  );
  const full = await threads(runtime, built);
  const warm = await warmRun(runtime);
  console.log(`${kind} ${runtime.version}, ms of processor time of a thread until its result:`);
  show('nothing in the bundle', empty);
  show('playwright-core in the bundle', full);
  console.log(`  a further run on that thread: ${warm.toFixed(1)}`);
}

/** Of the first thread of a host, and the median of the next ones. */
type Threads = { first: number; next: number };

async function threads(
  runtime: Runtime,
  bundleOf: (yard: Yard) => Promise<Bundle>,
): Promise<Threads> {
  await using yard = await openYard('auto', { runtime, isolation: 'fresh' });
  const bundle = await bundleOf(yard);
  const first = await used(yard, bundle);
  const others: number[] = [];
  await used(yard, bundle); // it may have been started before the code was compiled
  while (others.length < THREADS) others.push(await used(yard, bundle));
  return { first, next: quantile(others, 0.5) };
}

async function warmRun(runtime: Runtime): Promise<number> {
  await using yard = await openYard('auto', { runtime });
  const bundle = await built(yard);
  const totals: number[] = [];
  for (let runs = 0; runs <= THREADS; runs++) totals.push(await used(yard, bundle));
  return ((totals.at(-1) ?? 0) - (totals[0] ?? 0)) / THREADS;
}

/** The thread's CPU time from its start to the handler's end, in ms. */
async function used(yard: Yard, bundle: Bundle): Promise<number> {
  const { outcome } = await yard.run('', { bundle });
  await yard.idle();
  if (outcome.type !== 'result') throw new Error(JSON.stringify(outcome));
  const { user, system } = JSON.parse(outcome.json ?? '{}') as { user: number; system: number };
  return (user + system) / 1_000;
}

async function built(yard: Yard): Promise<Bundle> {
  const path = join(yard.dir, 'cpu.mjs');
  const { sha256 } = await bundle({ root: REPOSITORY, entrypoint: ENTRY, outFile: path });
  return { path, sha256 };
}

function show(what: string, { first, next }: Threads): void {
  const ratio = (next / first).toFixed(2);
  console.log(
    `  ${what}: first ${first.toFixed(0)}, next ${next.toFixed(0)}; next / first ${ratio}`,
  );
}
