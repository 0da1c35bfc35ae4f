/**
 * `node test/bench/page/stages.ts [rounds]`: the four stages of a session as public benchmarks of
 * browser services measure them: create, connect, goto, release, one after the other, with
 * Playwright. Plain: the launch of the same Chrome, a new page, the same goto, the close.
 */
import { type Browser, chromium, type Page } from 'playwright-core';
import { startSite } from '../../support/servers/site.ts';
import { SPARES } from '../../support/service/serve.ts';
import { boot } from '../../support/service/stack.ts';
import { type Named, type Peer, sessionsOf, triedBy } from '../support/providers.ts';
import { type Effort, type Row, rowOf, showRow } from '../support/rows.ts';
import { settled } from '../support/settled.ts';

const ROUNDS = Number(process.argv[2] ?? 5);
const CHROME = process.env['TABERN_CHROME'] ?? '/usr/lib/chromium/chromium';
const ARGS = ['--no-sandbox', '--no-first-run', '--disable-background-networking'];
const RUNS = 10;
const WARM_UP_RUNS = 20;
const STAGES = ['create', 'connected', 'goto', 'release'] as const;

type Stage = (typeof STAGES)[number];
/** Milliseconds of each run. */
type Times = Record<Stage, number[]>;

if (import.meta.main) {
  for (const row of await stages({ rounds: ROUNDS, samplesMax: WARM_UP_RUNS })) showRow(row);
}

export async function stages(effort: Effort, peers: readonly Peer[] = []): Promise<Row[]> {
  await using site = await startSite();
  await using stack = await boot({ env: SPARES, isDirect: true });
  await settled(stack.pid);
  const all: Named[] = [sessionsOf(stack), ...peers];
  const rows = all.map(({ name }) => STAGES.map((stage) => ({ stage, row: rowOf(stage, name) })));
  const runs = (count: number) => Math.min(count, effort.samplesMax);
  const timesOf = (provider: Named, count: number) =>
    triedBy(provider.name, () => inRuns(() => session(provider, site.url), runs(count)));
  for (const provider of all) await timesOf(provider, WARM_UP_RUNS);
  for (let round = 0; round < effort.rounds; round += 1) {
    const plain = await inRuns(() => launched(site.url), runs(RUNS));
    for (const [index, provider] of all.entries()) {
      await settled(stack.pid);
      const times = await timesOf(provider, RUNS);
      if (times === undefined) continue;
      for (const { stage, row } of rows[index] ?? []) {
        row.rounds.push({ took: times[stage], plain: plain[stage] });
      }
    }
  }
  return rows.flat().map(({ row }) => row);
}

async function session(provider: Named, url: string): Promise<number[]> {
  const clock = stopwatch();
  const { connectUrl, release } = await provider.create();
  clock.stop();
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = await firstPage(browser);
  clock.stop();
  await page.goto(url);
  clock.stop();
  await browser.close();
  await release();
  return clock.stop();
}

async function launched(url: string): Promise<number[]> {
  const clock = stopwatch();
  const browser = await chromium.launch({ executablePath: CHROME, args: ARGS });
  clock.stop();
  const page = await browser.newPage();
  clock.stop();
  await page.goto(url);
  clock.stop();
  await browser.close();
  return clock.stop();
}

async function firstPage(browser: Browser): Promise<Page> {
  return browser.contexts()[0]?.pages()[0] ?? (await browser.newPage());
}

async function inRuns(act: () => Promise<number[]>, count: number): Promise<Times> {
  const times: Times = { create: [], connected: [], goto: [], release: [] };
  for (let run = 0; run < count; run += 1) {
    const took = await act();
    for (const [index, stage] of STAGES.entries()) times[stage].push(took[index] ?? Number.NaN);
  }
  return times;
}

/** The times between its stops, in milliseconds. */
function stopwatch() {
  const times: number[] = [];
  let before = performance.now();
  return {
    stop(): number[] {
      const now = performance.now();
      times.push(now - before);
      before = now;
      return times;
    },
  };
}
