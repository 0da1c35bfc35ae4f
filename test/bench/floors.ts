/**
 * `node test/bench/floors.ts [runs]`: what the times of `npm run bench` cannot go below on this
 * machine, which must be idle: the CPU of a Chrome's start and end, by hand and in a session's
 * jail; each step of a function that drives its browser with playwright-core, on a Chrome that
 * runs; the least start, until two processes that only load the service's packages have ended
 * beside a Chrome in its jail, and the same with the modules of core, the gateway and the runner;
 * and the service's start until its first session has answered. CPU is that of the whole machine
 * (/proc/stat), so that what the kernel does after the end of a process counts.
 */
import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { launchOne } from '../runner/browser/lab.ts';
import { busyMs } from '../support/run/processors.ts';
import { startSite } from '../support/servers/site.ts';
import { SPARES } from '../support/service/serve.ts';
import { boot } from '../support/service/stack.ts';
import { tempDirectory } from '../support/temp.ts';
import { show } from './support/figures.ts';
import { firstAnswer, sessionsOf } from './support/providers.ts';
import { middle } from './support/rows.ts';
import { settled } from './support/settled.ts';

const RUNS = Number(process.argv[2] ?? 20);
const CHROME = process.env['TABERN_CHROME'] ?? '/usr/lib/chromium/chromium';
const ARGS = ['--no-sandbox', '--no-first-run', '--disable-background-networking'];
const CORES = availableParallelism();
/** Until the kernel has done its part of an end. */
const REST_MS = 500;
const STARTS_MAX = 10;
/** The larger packages that the two processes of the service load at their start. */
const PACKAGES = [
  [
    '@grpc/grpc-js',
    '@bufbuild/protobuf',
    'ajv/dist/2020.js',
    'busboy',
    'croner',
    'lru-cache',
    're2js',
    'better-sqlite3',
    'koa',
    '@koa/router',
    'pino',
  ],
  ['@grpc/grpc-js', '@bufbuild/protobuf', 'chrome-remote-interface', 'piscina', 'pino', 'ws'],
];
/** The service's own modules that they load; those of its threads are not among them. */
const MODULES = [
  ['./core/main.ts', './gateway/cli/roles/service.ts', './gateway/main.ts'],
  ['./runner/main.ts'],
];
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

await lives('by hand', async () => {
  const browser = await puppeteer.launch({ executablePath: CHROME, args: ARGS, pipe: true });
  return () => browser.close();
});
await using runDir = tempDirectory('tabern-bench-');
await lives('in a jail', inJail);
await steps();
await leastStart('packages', PACKAGES);
await leastStart('modules', MODULES);
await starts();

async function inJail() {
  const chrome = await launchOne({ runDir: runDir.path, allow: [], program: CHROME });
  return async () => {
    chrome.kill();
    await chrome.exited;
  };
}

/** Opens a Chrome; the function that is returned ends it. */
type Open = () => Promise<() => Promise<unknown>>;

async function lives(how: string, open: Open): Promise<void> {
  const cpu = { start: [] as number[], end: [] as number[] };
  for (let run = 0; run < RUNS; run += 1) {
    const before = busyMs();
    const end = await open();
    await sleep(REST_MS);
    const between = busyMs();
    await end();
    await sleep(REST_MS);
    cpu.start.push(between - before);
    cpu.end.push(busyMs() - between);
  }
  const [start, end] = [mean(cpu.start), mean(cpu.end)];
  console.log(`a Chrome ${how}: CPU of its start ${ms(start)}, of its end ${ms(end)}`);
  console.log(`  one after the other on ${CORES} cores, each takes at least:`);
  console.log(`  ${ms(end / CORES)} when all have started in advance`);
  console.log(`  ${ms((start + end) / CORES)} in a longer row`);
}

/** What the handler of the function "title" does, in a process that has loaded the driver. */
async function steps(): Promise<void> {
  await using site = await startSite();
  const took = { connect: [] as number[], page: [] as number[], goto: [] as number[] };
  for (let run = 0; run < RUNS; run += 1) {
    const running = await puppeteer.launch({ executablePath: CHROME, args: ARGS });
    await sleep(REST_MS);
    const times = [performance.now()];
    const mark = () => times.push(performance.now());
    const browser = await chromium.connectOverCDP(running.wsEndpoint());
    mark();
    const page = await browser.newPage();
    mark();
    await page.goto(site.url);
    await page.title();
    mark();
    await running.close();
    const [from = 0, connected = 0, opened = 0, read = 0] = times;
    took.connect.push(connected - from);
    took.page.push(opened - connected);
    took.goto.push(read - opened);
  }
  show('playwright-core: connect to a Chrome that runs', took.connect);
  show('playwright-core: a new page', took.page);
  show('playwright-core: goto and title', took.goto);
  const all = middle(took.connect) + middle(took.page) + middle(took.goto);
  console.log(`  in all ${ms(all)}`);
}

async function leastStart(what: string, loads: readonly (readonly string[])[]): Promise<void> {
  const took: number[] = [];
  const cpu: number[] = [];
  for (let run = 0; run <= Math.min(RUNS, STARTS_MAX); run += 1) {
    const [before, from] = [busyMs(), performance.now()];
    const [end] = await Promise.all([inJail(), ...loads.map(loaded)]);
    if (run > 0) {
      // the first compiled them
      took.push(performance.now() - from);
      cpu.push(busyMs() - before);
    }
    await end();
    await sleep(REST_MS);
  }
  show(`two processes with the ${what}, and a Chrome in its jail`, took);
  console.log(`  CPU ${ms(mean(cpu))}`);
}

/** Compiled before, as the service's own modules are. */
async function loaded(names: readonly string[]): Promise<void> {
  const code = `await Promise.all(${JSON.stringify(names)}.map((name) => import(name)));`;
  const env = { ...process.env, NODE_COMPILE_CACHE: runDir.path };
  const words = ['--input-type=module', '--eval', code];
  await promisify(execFile)(process.execPath, words, { cwd: ROOT, env });
}

async function starts(): Promise<void> {
  await using stack = await boot({ env: SPARES, isDirect: true });
  await settled(stack.pid); // its key pairs are made
  const sessions = sessionsOf(stack);
  await firstAnswer(sessions);
  const took = { ready: [] as number[], cpu: [] as number[], first: [] as number[] };
  for (let run = 0; run < Math.min(RUNS, STARTS_MAX); run += 1) {
    await stack.kill('SIGTERM');
    await sleep(REST_MS);
    const before = busyMs();
    await stack.restart();
    took.ready.push(stack.readyMs);
    took.first.push(stack.readyMs + (await firstAnswer(sessions)));
    took.cpu.push(busyMs() - before);
    await settled(stack.pid);
  }
  show('start -> ready', took.ready);
  show('start -> first session', took.first);
  const cpu = mean(took.cpu);
  console.log(`  CPU until then ${ms(cpu)}: at least ${ms(cpu / CORES)} on ${CORES} cores`);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function ms(value: number): string {
  return `${value.toFixed(0)} ms`;
}
