/**
 * `node test/bench/functions/invoke.ts [runs]`: the time of a trivial handler from the request to
 * COMPLETED, warm, which means after the spare Chrome has been replaced; the shares of Chrome and
 * of the service in it; and the same work by hand in the same run: a node process that launches the
 * same Chrome, opens a page and closes it. Then a hundred of them at once. Read the ratios: the
 * times depend on the machine and its load.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import puppeteer from 'puppeteer-core';
import {
  type Invocation,
  invoke,
  isOver,
  publish,
  TRIVIAL_PROJECT,
} from '../../support/clients/functions.ts';
import { until } from '../../support/poll.ts';
import { startSite } from '../../support/servers/site.ts';
import { SPARES } from '../../support/service/serve.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { show, timed } from '../support/figures.ts';
import { type Effort, middle, type Row, type RowId, rowOf, showRow } from '../support/rows.ts';
import { settled } from '../support/settled.ts';
import { PAUSE_MS, WARM_UP_RUNS } from './pauses.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const CHROME = process.env['TABERN_CHROME'] ?? '/usr/bin/chromium-headless-shell';
/** Of one run: the last of 200 at once took 62 s on a slow machine. */
const RUN_LIMIT_MS = 300_000;
/** Fine enough for the result, coarse enough not to load the gateway. */
const POLL_MS = 4;
const RUNS = Number(process.argv[2] ?? 50);
/** Until the thread of its project has loaded and compiled the driver. */
const DRIVER_WARM_UP_RUNS = 10;
const RUNS_A_ROUND = 10;
const PLAIN_RUNS_A_ROUND = 4;
/** By hand a run takes about a second: a fifth of the runs is enough for a median. */
const PLAIN_RUNS = Math.max(5, Math.round(RUNS / 5));
/** The scripts that users write today: `CHROME`, `FLAGS` and `SITE` are filled in. */
const PLAIN = `
import puppeteer from 'puppeteer-core';
const browser = await puppeteer.launch({ executablePath: CHROME, headless: 'shell', args: FLAGS });
const page = await browser.newPage();
await page.goto('about:blank');
await browser.close();`;
const PLAIN_DRIVER = `
import { chromium } from 'playwright-core';
const browser = await chromium.launch({ executablePath: CHROME, args: FLAGS });
const page = await browser.newPage();
await page.goto(SITE);
console.log(await page.title(), await page.locator('a').count());
await browser.close();`;
/** As root, Chrome has its sandbox only in a jail. */
const FLAGS = process.getuid?.() === 0 ? ['--no-sandbox'] : [];

type Call = { functionId: string; params?: object };

/** One line of the runner's log at level debug, in milliseconds. */
type Timing = {
  invocationId: string;
  chromeMs: number;
  runMs: number;
  closeMs: number;
  totalMs: number;
};

/** A runner's default. */
const INVOCATIONS_MAX = 4;
const HANDLER_MS = 200;
const AT_ONCE = 100;
/** A handler that takes some time, beside the trivial one. */
const PROJECT = {
  ...TRIVIAL_PROJECT,
  'index.ts': `${TRIVIAL_PROJECT['index.ts']}
defineFn('waits', async () => await new Promise((resolve) => setTimeout(resolve, ${HANDLER_MS})));
`,
};

/** The function of most people, with playwright-core from the registry. */
const TITLE = fileURLToPath(new URL('../../support/projects/title/', import.meta.url));

if (import.meta.main) await main();

async function main(): Promise<void> {
  await using stack = await boot({ env: { ...SPARES, TABERN_LOG_LEVEL: 'debug' }, isDirect: true });
  const { trivial = '', waits: waiting = '' } = await publish(stack, PROJECT);
  await Promise.all(
    Array.from({ length: WARM_UP_RUNS }, () => once(stack, { functionId: trivial })),
  );
  await settled(stack.pid);
  const { ended, took: waits } = await spaced(stack, { functionId: trivial }, RUNS);
  show(`invoke -> COMPLETED, ${RUNS} runs`, waits);
  const found = timings(stack);
  const own = ended.flatMap(({ id }) => found.get(id) ?? []);
  showShares(own, waits);
  const plain = await timed(PLAIN_RUNS, () => byHand(PLAIN));
  showOverhead(ended, found, plain);
  show(`by hand (node, puppeteer.launch, goto, close), ${PLAIN_RUNS} runs`, plain);
  const launches = await timed(PLAIN_RUNS, launchAlone);
  show(`the same Chrome alone (launch, close), ${PLAIN_RUNS} runs`, launches);
  console.log(`Chrome alone / invoke: ${(middle(launches) / middle(waits)).toFixed(2)}`);
  console.log(`invoke / by hand: ${(middle(waits) / middle(plain)).toFixed(2)}`);
  for (const row of await driven(stack, { rounds: 5, samplesMax: PLAIN_RUNS })) showRow(row);
  await atOnce(stack, waiting);
}

/** A trivial function, and one that drives its browser, beside the same by hand. */
export async function functions(effort: Effort): Promise<Row[]> {
  await using stack = await boot({ env: SPARES, isDirect: true });
  const { trivial = '' } = await publish(stack, TRIVIAL_PROJECT);
  const runs = Math.min(WARM_UP_RUNS, effort.samplesMax);
  await Promise.all(Array.from({ length: runs }, () => once(stack, { functionId: trivial })));
  await settled(stack.pid);
  const row = await rowBeside('trivial', effort, {
    took: async (count) => (await spaced(stack, { functionId: trivial }, count)).took,
    byHand: () => byHand(PLAIN),
  });
  return [row, ...(await driven(stack, effort))];
}

async function driven(stack: Stack, effort: Effort): Promise<Row[]> {
  await using site = await startSite();
  const names = ['package.json', 'package-lock.json', 'index.ts', 'more.ts'];
  const files = names.map((name) => [name, readFileSync(join(TITLE, name), 'utf8')] as const);
  const { title = '' } = await publish(stack, Object.fromEntries(files));
  const call = { functionId: title, params: { url: site.url } };
  await spaced(stack, call, Math.min(DRIVER_WARM_UP_RUNS, effort.samplesMax));
  const row = await rowBeside('driver', effort, {
    took: async (count) => (await spaced(stack, call, count)).took,
    byHand: () => byHand(PLAIN_DRIVER, site.url),
  });
  return [row];
}

type Beside = { took(count: number): Promise<number[]>; byHand(): Promise<void> };

async function rowBeside(id: RowId, effort: Effort, { took, byHand }: Beside): Promise<Row> {
  const row = rowOf(id);
  await byHand(); // reads its files
  for (let round = 0; round < effort.rounds; round += 1) {
    row.rounds.push({
      took: await took(Math.min(RUNS_A_ROUND, effort.samplesMax)),
      plain: await timed(Math.min(PLAIN_RUNS_A_ROUND, effort.samplesMax), byHand),
    });
  }
  return row;
}

/** Runs with a pause between them. */
async function spaced(stack: Stack, call: Call, runs: number) {
  const ended: Invocation[] = [];
  const took: number[] = [];
  for (let run = 0; run < runs; run += 1) {
    took.push(...(await timed(1, async () => void ended.push(await once(stack, call)))));
    await sleep(PAUSE_MS);
  }
  return { ended, took };
}

async function once(stack: Stack, { functionId, params }: Call): Promise<Invocation> {
  const { id } = await invoke(stack, functionId, params);
  const invocation = await until(
    async () => {
      const one = await stack.call<Invocation>(`/v1/functions/invocations/${id}?wait=30`);
      return isOver(one.status) && one;
    },
    RUN_LIMIT_MS,
    POLL_MS,
  );
  const { status, cause } = invocation;
  if (status !== 'COMPLETED') throw new Error(`${status}: ${JSON.stringify(cause)}`);
  return invocation;
}

/**
 * The service's own share: from accepted to COMPLETED by core's clock, in whole milliseconds,
 * without the wait for a browser; the handler takes no time.
 */
function showOverhead(
  ended: readonly Invocation[],
  found: ReadonlyMap<string, Timing>,
  plain: readonly number[],
): void {
  const costs = ended.flatMap(({ id, createdAt, endedAt = '' }) => {
    const timing = found.get(id);
    if (!timing) return [];
    const whole = Date.parse(endedAt) - Date.parse(createdAt) - timing.chromeMs;
    return [{ whole, open: whole - timing.closeMs }];
  });
  const title = 'own overhead (accepted -> COMPLETED, less hand-over and handler)';
  show(
    title,
    costs.map(({ whole }) => whole),
    plain,
  );
  show(
    '  of it before the browser is closed',
    costs.map(({ open }) => open),
  );
}

/** Each with a separate Chrome; on a small machine the starts of Chrome dominate. */
async function atOnce(stack: Stack, functionId: string): Promise<void> {
  const all = Array.from({ length: AT_ONCE });
  const took = await timed(1, async () => {
    await Promise.all(all.map(() => once(stack, { functionId })));
  });
  const ideal = (AT_ONCE / INVOCATIONS_MAX) * HANDLER_MS;
  const ratio = (middle(took) / ideal).toFixed(2);
  console.log(
    `${AT_ONCE} at once of ${HANDLER_MS} ms, ${INVOCATIONS_MAX} at a time, a Chrome each: ` +
      `${middle(took).toFixed(0)} ms = ${ratio}x of the ideal (without Chrome: hosts.ts)`,
  );
}

async function byHand(text: string, site = ''): Promise<void> {
  const script = text
    .replace('CHROME', JSON.stringify(CHROME))
    .replace('FLAGS', JSON.stringify(FLAGS))
    .replace('SITE', JSON.stringify(site));
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    cwd: ROOT,
  });
}

/** A warm invocation does not wait for a launch: this is the time that the spares save. */
async function launchAlone(): Promise<void> {
  const browser = await puppeteer.launch({
    executablePath: CHROME,
    headless: 'shell',
    args: FLAGS,
  });
  await browser.close();
}

/** The runner's log line of each ended invocation. */
function timings(stack: Stack): Map<string, Timing> {
  const lines = stack
    .logs()
    .split('\n')
    .filter((line) => line.includes('"invocation ended"'))
    .map((line) => JSON.parse(line) as Timing);
  return new Map(lines.map((line) => [line.invocationId, line]));
}

function showShares(lines: readonly Timing[], waits: readonly number[]): void {
  if (lines.length === 0) {
    console.log('the runner logged no timings: the share of Chrome is unknown');
    return;
  }
  for (const part of ['chromeMs', 'runMs', 'closeMs'] as const) {
    const share = middle(lines.map((line) => line[part])) / middle(waits);
    console.log(`  ${part.slice(0, -2).padEnd(7)} ${(100 * share).toFixed(0)} % of it`);
  }
}
