/**
 * The definition of Deno-compatible, as a test: the byte-identical host and the byte-identical
 * bundle give the same results and the same logs under Node and Deno, in each sandbox. What Node
 * gives without a sandbox is checked by itself; every other row must give the same.
 */
import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect, isDeepStrictEqual } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import type { Bundle } from '../../../runner/functions/bundle-cache.ts';
import { canRun, findRuntime, type Runtime } from '../../../runner/functions/runtime.ts';
import { type Jail, JailError } from '../../../runner/jail/jail.ts';
import { openJail } from '../../../runner/jail/open.ts';
import { bundle } from '../../support/runner/bundle.ts';
import { directory } from '../../support/runner/project.ts';
import { type Lab, openLab } from '../browser/lab.ts';
import { log, openYard, type Ran, type RunOptions, type Yard } from './bundle.ts';

const test = suite('runner/host/engines');
const REPOSITORY = join(import.meta.dirname, '../../..');
const ENTRY = 'test/support/projects/engines/index.ts';
const ABORTS_MAX = 10;
/** What a source is that Deno runs as it is. */
const DENO_STYLE = {
  'deno.json': `{ "imports": {
    "tabern": "npm:tabern", "driver": "npm:playwright-core@1.65.1", "@/": "./lib/" } }`,
  'index.ts': `import { join } from 'node:path';
import { chromium } from 'driver';
import { defineFn } from 'tabern';
import { titled } from '@/util.ts';
import { VERSION } from './version.ts';

defineFn('styled', async ({ session }, { url }: { url: string }) => {
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const title = await titled(await browser.newPage(), url);
  await browser.close();
  return { title, joined: join('a', '..', 'b'), VERSION };
});`,
  'lib/util.ts': `import type { Page } from 'driver';
export async function titled(page: Page, url: string): Promise<string> {
  await page.goto(url);
  console.log('there');
  return await page.title();
}`,
  'version.ts': 'export const VERSION: number = 7;',
};

/** Functions of the fixture; a row gives one outcome and one log of each. */
const RUNS: [name: string, options?: RunOptions][] = [
  ['trivial'],
  ['context', { params: { a: [1, null, 'ü'], b: { c: 1e21 } } }],
  ['nothing'],
  ['bigint'],
  ['cycle'],
  ['thrown', { params: { depth: 2 } }],
  ['text'],
  ['floating'],
  ['late'],
  ['exit'],
  ['console'],
  ['timers'],
  ['modules'],
];

/** A run without its id and its times. */
type Told = { outcome: Ran['outcome']; lines: string[] };
type Row = { name: string; jail: Jail; runtime: Runtime };
type Bundles = { own: Bundle; styled: Bundle };

/** Of the sandboxes, those that work on this machine; bwrap must. */
async function rowsOf(): Promise<Row[]> {
  const runtimes = await Promise.all([findRuntime('node', {}), findRuntime('deno', {})]);
  const jails: Jail[] = [await openJail({ sandbox: 'none', log })];
  for (const sandbox of ['bwrap', 'landlock'] as const) {
    try {
      jails.push(await openJail({ sandbox, log }));
    } catch (error) {
      if (!(error instanceof JailError) || sandbox === 'bwrap') throw error;
    }
  }
  const rows = runtimes.flatMap((runtime) =>
    jails.map((jail) => ({ name: `${runtime.kind}/${jail.level}`, jail, runtime })),
  );
  return rows.filter(({ jail, runtime }) => canRun(runtime, jail));
}

async function built(yard: Yard, root: string, entrypoint: string): Promise<Bundle> {
  const outFile = join(yard.dir, `${entrypoint.replaceAll('/', '-')}.mjs`);
  const { sha256 } = await bundle({ root, entrypoint, outFile });
  return { path: outFile, sha256 };
}

async function told(yard: Yard, options: RunOptions): Promise<Told> {
  const { outcome, lines } = await yard.run('', { timeoutMs: 120_000, ...options });
  const said = lines.map(({ level, message }) => `${level} ${message}`);
  return { outcome: { ...outcome, ...('id' in outcome ? { id: '' } : {}) }, lines: said };
}

/** The handler has 200 ms to print its abort, which may be too short on a busy machine. */
async function aborted(yard: Yard, bundle: Bundle): Promise<Told> {
  const options = { bundle, name: 'aborted', endOn: 'begun' };
  for (let tries = 1; ; tries++) {
    const found = await told(yard, options);
    if (found.lines.length === 2 || tries === ABORTS_MAX) return found;
  }
}

/** All that one row gives. */
async function all({ jail, runtime }: Row, { own, styled }: Bundles, lab: Lab) {
  await using yard = await openYard(jail, { runtime, relay: lab.relay });
  const found: Record<string, Told> = {};
  for (const [name, options] of RUNS) {
    found[name] = await told(yard, { bundle: own, name, ...options });
  }
  found['aborted'] = await aborted(yard, own);
  const params = { url: lab.siteUrl };
  for (const name of ['playwright', 'puppeteer']) {
    found[name] = await told(yard, { bundle: own, name, params });
  }
  found['styled'] = await told(yard, { bundle: styled, name: 'styled', params });
  return found;
}

function resultOf(one: Told | undefined): unknown {
  const { outcome } = must(one, 'an outcome');
  if (outcome.type !== 'result') throw new Error(JSON.stringify(outcome));
  return outcome.json === undefined ? undefined : JSON.parse(outcome.json);
}

function failureOf(one: Told | undefined) {
  const { outcome } = must(one, 'an outcome');
  if (outcome.type !== 'failure') throw new Error(JSON.stringify(outcome));
  return outcome;
}

const rows = await rowsOf();

test(`one bundle has equal results on ${rows.map(({ name }) => name).join(', ')}`, async () => {
  await using lab = await openLab({ allow: ['127.0.0.0/8'] });
  await using yard = await openYard('none');
  await using project = directory(DENO_STYLE);
  const driver = join(project.path, 'node_modules/playwright-core');
  await mkdir(join(project.path, 'node_modules'));
  await cp(join(REPOSITORY, 'node_modules/playwright-core'), driver, { recursive: true });
  const bundles = {
    own: await built(yard, REPOSITORY, ENTRY),
    styled: await built(yard, project.path, 'index.ts'),
  };
  const [first, ...others] = rows;
  const wanted = await all(must(first, 'node/none'), bundles, lab);
  check(wanted);
  const differing: string[] = [];
  for (const row of others) {
    const found = await all(row, bundles, lab);
    for (const [name, told] of Object.entries(wanted)) {
      if (isDeepStrictEqual(found[name], told)) continue;
      differing.push(`${name}: ${inspect(told)} but on ${row.name} ${inspect(found[name])}`);
    }
  }
  assert.equal(differing, []);
});

/** That the rows are not alike in being wrong. */
function check(found: Record<string, Told>): void {
  assert.is(resultOf(found['trivial']), 'hello');
  assert.is(resultOf(found['nothing']), undefined);
  const { params, session, env } = resultOf(found['context']) as Record<string, unknown>;
  assert.equal(params, { a: [1, null, 'ü'], b: { c: 1e21 } });
  assert.equal(session, ['session', '127.0.0.1']);
  assert.equal(env, ['HOME', 'LANG', 'NODE_ENV', 'TMPDIR', 'TZ']);
  assert.match(failureOf(found['bigint']).message, /cannot be written as JSON: .*BigInt/);
  const { name, stack } = failureOf(found['thrown']);
  assert.is(name, 'TypeError');
  const frames = stack.split('\n').slice(1);
  assert.is(frames.length, 4, stack);
  assert.match(frames[0] ?? '', /at fail \(.*fail\.ts:6:9\)$/);
  assert.match(frames[3] ?? '', /engines\/index\.ts:\d+:\d+/);
  assert.is(failureOf(found['text']).message, 'the handler threw a text');
  assert.match(failureOf(found['floating']).stack, /index\.ts:\d+/);
  assert.match(failureOf(found['late']).stack, /^TypeError: no such page\n {4}at fail/);
  assert.match(failureOf(found['exit']).message, /process\.exit\(3\)/);
  assert.is(found['console']?.lines.length, 18, found['console']?.lines.join('\n'));
  assert.equal(found['console']?.lines.slice(1, 5), [
    'info format has 7.5, { nested: true }',
    'warn warned',
    'error failed: in a line',
    'debug debugged',
  ]);
  const { order, refused } = resultOf(found['timers']) as Record<string, unknown>;
  assert.equal([order, refused], [['microtask', 'tick', 'timeout'], 'AbortError']);
  assert.is(found['aborted']?.outcome.type, 'aborted');
  assert.equal(found['aborted']?.lines, ['log begun', 'log told: the invocation was ended']);
  assert.equal(resultOf(found['playwright']), { title: 'the site', sum: 3, text: 1 });
  assert.equal(found['playwright']?.lines, ['log page: summed']);
  assert.equal(resultOf(found['puppeteer']), { title: 'the site', sum: 3 });
  assert.equal(resultOf(found['styled']), { title: 'the site', joined: 'b', VERSION: 7 });
}

test.run();
