/** Warm and fresh functions: the state that runs share, and the thread that is kept ready. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { findRuntime } from '../../../runner/functions/runtime.ts';
import { moduleOf, openYard, type Yard } from '../host/bundle.ts';

const test = suite('runner/functions/isolation');

/** Counts in the module and in a global; `f` and `g` are of one bundle. */
const counting = (f: string, g: string) => `
  let inModule = 0;
  const count = async () => [++inModule, globalThis.count = (globalThis.count ?? 0) + 1];
  const defined = new Map([['f', ${f}], ['g', ${g}]]
    .map(([name, config]) => [name, { name, handler: count, config }]));
  export const definitions = () => defined;
  export const manifests = () => [...defined.keys()].map((name) => ({ name }));`;
const WARM = '{ isolation: "warm" }';
const RUNS_MAX = 50;
const FRESH = '{ isolation: "fresh" }';

/** What each run counts, one after the other, each on the thread that the last one gave back. */
async function counts(yard: Yard, source: string, names: string[]): Promise<number[]> {
  const bundle = await yard.bundle(source);
  const found: number[] = [];
  for (const name of names) {
    const { outcome } = await yard.run('', { bundle, name });
    if (outcome.type !== 'result') throw new Error(JSON.stringify(outcome));
    const [inModule, inGlobal] = JSON.parse(outcome.json ?? '[]') as number[];
    assert.is(inModule, inGlobal);
    found.push(Number(inModule));
    await yard.idle();
  }
  return found;
}

/**
 * Runs the function until a thread has had three runs. On a busy machine a thread may report too
 * late that it is clean, and is then not reused, so more runs may be needed.
 */
async function reused(yard: Yard, source: string, name: string): Promise<void> {
  for (let runs = 1; ((await counts(yard, source, [name]))[0] ?? 0) < 3; runs++) {
    if (runs === RUNS_MAX) throw new Error(`no thread had three runs of ${name} in ${runs}`);
  }
}

for (const kind of ['node', 'deno'] as const) {
  test(`under ${kind} warm functions keep state, fresh ones do not`, async () => {
    await using yard = await openYard('auto', { runtime: await findRuntime(kind, {}) });
    const source = counting('{}', FRESH);
    await reused(yard, source, 'f');
    assert.equal(await counts(yard, source, ['g', 'g', 'g']), [1, 1, 1]);
    await reused(yard, source, 'f');
  });
}

test("the operator's setting applies to functions without their own", async () => {
  await using yard = await openYard('auto', { isolation: 'fresh' });
  const source = counting('{}', WARM);
  await reused(yard, source, 'g');
  assert.equal(await counts(yard, source, ['f', 'f', 'f']), [1, 1, 1]);
});

test('threads share compiled modules, and handlers do not see the cache', async () => {
  await using yard = await openYard('auto', { isolation: 'fresh' });
  const list = `const { readdirSync } = await import('node:fs');
    const found = readdirSync(process.env.TMPDIR, { recursive: true });
    return { env: process.env.NODE_COMPILE_CACHE, found };`;
  const bundle = await yard.bundle(moduleOf(`f: async () => { ${list} }`));
  for (let runs = 1; ; runs++) {
    const { outcome } = await yard.run('', { bundle });
    if (outcome.type !== 'result') throw new Error(JSON.stringify(outcome));
    const { env, found } = JSON.parse(outcome.json ?? '{}');
    assert.is(env, undefined);
    // a file of the cache lies in a directory that names the version of Node
    if (found.some((path: string) => /^\.compiled\/[^/]+\/[^/]+$/.test(path))) break;
    assert.ok(runs < RUNS_MAX, 'nothing was kept');
    await yard.idle();
  }
});

test('concurrent fresh runs have a thread each', async () => {
  await using yard = await openYard('auto', { isolation: 'fresh' });
  const bundle = await yard.bundle(counting('{}', '{}'));
  const runs = Array.from({ length: 6 }, () => yard.run('', { bundle }));
  const values = (await Promise.all(runs)).map(({ outcome }) =>
    outcome.type === 'result' ? outcome.json : JSON.stringify(outcome),
  );
  assert.equal(
    values,
    Array.from({ length: 6 }, () => '[1,1]'),
  );
});

test.run();
