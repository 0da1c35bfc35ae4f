/**
 * `node test/bench/invoke.ts [runs]`: the time of a trivial handler from the request to COMPLETED,
 * warm, which means after the spare Chrome has been replaced; the shares of Chrome and of the
 * service in it; and the same work by hand in the same run: a node process that launches the same
 * Chrome, opens a page and closes it. Then a hundred of them at once. Read the ratios: the times
 * depend on the machine and its load.
 */
import { execFile } from 'node:child_process';
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
} from '../support/clients/functions.ts';
import { until } from '../support/poll.ts';
import { boot, type Stack } from '../support/service/stack.ts';
import { quantile, show, timed } from './support/figures.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CHROME = process.env['TABERN_CHROME'] ?? '/usr/bin/chromium-headless-shell';
const RUN_LIMIT_MS = 60_000;
/** Fine enough for the result, coarse enough not to load the gateway. */
const POLL_MS = 4;
/** Until the service's own code is compiled: its first runs take 1.5 times as long. */
const WARM_UP_RUNS = 200;
/** A Chrome starts in 0.1 to 0.3 s here, and the previous one ends meanwhile. */
const PAUSE_MS = 700;
/** By then the processes that the warm-up started have ended. */
const REST_MS = 5_000;
const RUNS = Number(process.argv[2] ?? 50);
/** By hand a run takes about a second: a fifth of the runs is enough for a median. */
const PLAIN_RUNS = Math.max(5, Math.round(RUNS / 5));
/** The script that users write today: `CHROME` and `FLAGS` are filled in. */
const PLAIN = `
import puppeteer from 'puppeteer-core';
const browser = await puppeteer.launch({ executablePath: CHROME, headless: 'shell', args: FLAGS });
const page = await browser.newPage();
await page.goto('about:blank');
await browser.close();`;
/** As root, Chrome has its sandbox only in a jail. */
const FLAGS = process.getuid?.() === 0 ? ['--no-sandbox'] : [];

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

{
  await using stack = await boot({ env: { TABERN_LOG_LEVEL: 'debug' }, isDirect: true });
  const { trivial = '', waits: waiting = '' } = await publish(stack, PROJECT);
  await Promise.all(Array.from({ length: WARM_UP_RUNS }, () => once(stack, trivial)));
  await sleep(REST_MS);
  const ended: Invocation[] = [];
  const waits: number[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    waits.push(...(await timed(1, async () => void ended.push(await once(stack, trivial)))));
    await sleep(PAUSE_MS);
  }
  show(`invoke -> COMPLETED, ${RUNS} runs`, waits);
  const found = timings(stack);
  const own = ended.flatMap(({ id }) => found.get(id) ?? []);
  showShares(own, waits);
  const plain = await timed(PLAIN_RUNS, byHand);
  showOverhead(ended, found, plain);
  show(`by hand (node, puppeteer.launch, goto, close), ${PLAIN_RUNS} runs`, plain);
  const launches = await timed(PLAIN_RUNS, launchAlone);
  show(`the same Chrome alone (launch, close), ${PLAIN_RUNS} runs`, launches);
  console.log(`Chrome alone / invoke: ${(middle(launches) / middle(waits)).toFixed(2)}`);
  console.log(`invoke / by hand: ${(middle(waits) / middle(plain)).toFixed(2)}`);
  await atOnce(stack, waiting);
}

async function once(stack: Stack, functionId: string): Promise<Invocation> {
  const { id } = await invoke(stack, functionId);
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
    await Promise.all(all.map(() => once(stack, functionId)));
  });
  const ideal = (AT_ONCE / INVOCATIONS_MAX) * HANDLER_MS;
  const ratio = (middle(took) / ideal).toFixed(2);
  console.log(
    `${AT_ONCE} at once of ${HANDLER_MS} ms, ${INVOCATIONS_MAX} at a time, a Chrome each: ` +
      `${middle(took).toFixed(0)} ms = ${ratio}x of the ideal (without Chrome: hosts.ts)`,
  );
}

async function byHand(): Promise<void> {
  const script = PLAIN.replace('CHROME', JSON.stringify(CHROME)).replace(
    'FLAGS',
    JSON.stringify(FLAGS),
  );
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

function middle(values: readonly number[]): number {
  return quantile(values, 0.5);
}
