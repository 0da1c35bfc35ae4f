/**
 * `node test/bench/invoke.ts [runs]`: how long a trivial handler takes from the request to
 * COMPLETED, warm, one after the other; how much of it is Chrome's; and how long the same takes by
 * hand in the same run: a node process that launches the same Chrome, opens a page and closes it.
 * Read the ratios: the figures are of this machine, at this moment.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import { type Invocation, invoke, isOver, publish } from '../support/functions.ts';
import { until } from '../support/poll.ts';
import { boot, type Stack } from '../support/stack.ts';
import { quantile, show, timed } from './figures.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CHROME = process.env['TABERN_CHROME'] ?? '/usr/bin/chromium-headless-shell';
const RUN_LIMIT_MS = 60_000;
/** Fine enough not to blur the figure, coarse enough not to load the gateway. */
const POLL_MS = 4;
const WARM_UP_RUNS = 5;
const RUNS = Number(process.argv[2] ?? 50);
/** By hand it takes a second or so: a fifth of the runs is enough for a median. */
const PLAIN_RUNS = Math.max(5, Math.round(RUNS / 5));
/** What people write today, as a script: `CHROME` is filled in. */
const PLAIN = `
import { chromium } from 'playwright-core';
const browser = await chromium.launch({ executablePath: CHROME });
const page = await browser.newPage();
await page.goto('about:blank');
await browser.close();`;

/** One line of the runner's log at level debug, in milliseconds. */
type Timing = { chromeMs: number; runMs: number; closeMs: number; totalMs: number };

{
  await using stack = await boot({ env: { TABERN_LOG_LEVEL: 'debug' } });
  const { trivial = '' } = await publish(stack);
  await timed(WARM_UP_RUNS, () => once(stack, trivial));
  const seenLines = timings(stack).length;
  const waits = await timed(RUNS, () => once(stack, trivial));
  show(`invoke -> COMPLETED, ${RUNS} runs`, waits);
  showShares(timings(stack).slice(seenLines), waits);
  const plain = await timed(PLAIN_RUNS, byHand);
  show(`by hand (node, launch, goto, close), ${PLAIN_RUNS} runs`, plain);
  const launches = await timed(PLAIN_RUNS, launchAlone);
  show(`the same Chrome alone (launch, close), ${PLAIN_RUNS} runs`, launches);
  console.log(`Chrome alone / invoke: ${(middle(launches) / middle(waits)).toFixed(2)}`);
  console.log(`invoke / by hand: ${(middle(waits) / middle(plain)).toFixed(2)}`);
}

async function once(stack: Stack, functionId: string): Promise<void> {
  const { id } = await invoke(stack, functionId);
  const { status, cause } = await until(
    async () => {
      const one = await stack.call<Invocation>(`/v1/functions/invocations/${id}`);
      return isOver(one.status) && one;
    },
    RUN_LIMIT_MS,
    POLL_MS,
  );
  if (status !== 'COMPLETED') throw new Error(`${status}: ${JSON.stringify(cause)}`);
}

async function byHand(): Promise<void> {
  const script = PLAIN.replace('CHROME', JSON.stringify(CHROME));
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    cwd: ROOT,
  });
}

/** Launching is off the way of a warm invocation: this tells what the spares save. */
async function launchAlone(): Promise<void> {
  const browser = await chromium.launch({ executablePath: CHROME });
  await browser.close();
}

/** What the runner says of each invocation that it ended. */
function timings(stack: Stack): Timing[] {
  return stack
    .logs()
    .split('\n')
    .filter((line) => line.includes('"invocation ended"'))
    .map((line) => JSON.parse(line) as Timing);
}

function showShares(lines: readonly Timing[], waits: readonly number[]): void {
  if (lines.length === 0) {
    console.log('the runner logged no timings: what of it is Chrome is unknown');
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
