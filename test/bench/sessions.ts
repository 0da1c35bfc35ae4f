/**
 * `node test/bench/sessions.ts [runs] [warm | cold | row | together | memory]`: the time until a
 * session responds to its first command, with spares, without, and in a row; ten sessions at once;
 * and memory. Each beside its baseline in the same run: puppeteer.launch and playwright's launch of
 * the same Chrome. Read the ratios.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import puppeteer, { type Browser } from 'puppeteer-core';
import { WebSocket } from 'ws';
import { until } from '../support/poll.ts';
import { familyOf } from '../support/service/processes.ts';
import { SPARES } from '../support/service/serve.ts';
import { boot, type Stack } from '../support/service/stack.ts';
import { show, timesOf } from './support/figures.ts';
import {
  connectionsTo,
  firstAnswer as firstOf,
  type Named,
  type Peer,
  type Provider,
  sessionsOf,
  triedBy,
} from './support/providers.ts';
import { type Effort, type Row, type RowId, rowOf, showRow } from './support/rows.ts';
import { settled } from './support/settled.ts';

const RUNS = Number(process.argv[2] ?? 15);
const CHROME = process.env['TABERN_CHROME'] ?? '/usr/lib/chromium/chromium';
const ARGS = ['--no-sandbox', '--no-first-run', '--disable-background-networking'];
const AT_ONCE = 10;
/** Until the service's own code is compiled. */
const WARM_UP_RUNS = 100;
/** By then the spares have been replaced: the warm case is measured. */
const REST_MS = 1_500;
/**
 * A first start creates key pairs for 8 s; memory is released after 5 s of rest
 * (proto/common/idle-gc.ts).
 */
const SETTLED_MS = 20_000;
const MIB = 1 << 20;
const CHROMES = /headless[-_]shell|chromium/;
const LOCAL = { TABERN_BROWSER_ALLOW_CIDRS: '127.0.0.1/32', TABERN_SESSION_GRACE_MS: '0' };

type Session = { id: string; connectUrl: string };

/** In a row: so many sessions, connections and launches of each round. */
const IN_A_ROW = 20;
const LAUNCHES = 5;

const RECORDED = { ready: 'tenReady', work: 'tenWork', both: 'tenBoth' } as const;
const LOGGED = { ready: 'tenReadyLogged', work: 'tenWorkLogged', both: 'tenBothLogged' } as const;

if (import.meta.main) {
  const parts = { warm, cold, row, together, memory };
  for (const [name, part] of Object.entries(parts)) {
    if ((process.argv[3] ?? name) === name) await part();
  }
}

async function warm(): Promise<void> {
  await using stack = await boot({ env: { ...LOCAL, TABERN_SESSION_SPARES: '2' }, isDirect: true });
  await settled(stack.pid);
  for (let run = 0; run < WARM_UP_RUNS; run += 1) await firstAnswer(stack);
  const [plain, took]: [number[], number[]] = [[], []];
  for (let run = 0; run < RUNS; run += 1) {
    await sleep(REST_MS);
    took.push(await firstAnswer(stack));
    plain.push(await opened(launchPlain));
  }
  show('puppeteer.launch -> first answer', plain);
  show('create -> first answer, warm', took, plain);
}

async function cold(): Promise<void> {
  for (const one of await noneReady({ rounds: RUNS, samplesMax: 1 })) showRow(one);
}

/** In sequence: none is measured while the Chrome of another still ends. */
export async function noneReady({ rounds, samplesMax }: Effort): Promise<Row[]> {
  const none = { TABERN_SESSION_SPARES: '0', TABERN_CHROME_SPARES: '0' };
  await using stack = await boot({ env: { ...LOCAL, ...none }, isDirect: true });
  await settled(stack.pid);
  await firstAnswer(stack);
  const launchPage = async () => {
    const browser = await chromium.launch({ executablePath: CHROME, args: ARGS });
    await browser.newPage();
    return browser;
  };
  const both = async () => {
    const plain = await opened(launchPage);
    const took = await firstAnswer(stack);
    await until(() => familyOf(stack.pid).every(({ command }) => !CHROMES.test(command)));
    return { plain, took };
  };
  const row = rowOf('cold');
  for (let round = 0; round < rounds; round += 1) {
    const samples: Awaited<ReturnType<typeof both>>[] = [];
    while (samples.length < Math.min(LAUNCHES, samplesMax)) samples.push(await both());
    row.rounds.push({
      took: samples.map(({ took }) => took),
      plain: samples.map(({ plain }) => plain),
    });
  }
  return [row];
}

async function row(): Promise<void> {
  const effort = { rounds: Math.max(2, Math.round(RUNS / 3)), samplesMax: WARM_UP_RUNS };
  for (const one of await inARow(effort)) showRow(one);
}

/** Sessions without a pause between them, as a queue of jobs creates them. */
export async function inARow(effort: Effort, peers: readonly Peer[] = []): Promise<Row[]> {
  await using stack = await boot({ env: SPARES, isDirect: true });
  await settled(stack.pid);
  const running = await launchPlain();
  const connection = connectionsTo(running.wsEndpoint());
  const all: Named[] = [sessionsOf(stack), ...peers];
  const times = (provider: Provider, count: number) =>
    timesOf(() => firstOf(provider), Math.min(count, effort.samplesMax));
  const launch = () => opened(() => chromium.launch({ executablePath: CHROME, args: ARGS }));
  const rows = all.map(({ name }) => ({
    launch: rowOf('launch', name),
    connect: rowOf('connect', name),
  }));
  try {
    for (const provider of [...all, connection] as Named[]) {
      await triedBy(provider.name, () => times(provider, WARM_UP_RUNS));
    }
    for (let round = 0; round < effort.rounds; round += 1) {
      await settled(stack.pid);
      const launches = await timesOf(launch, Math.min(LAUNCHES, effort.samplesMax));
      const connections = await times(connection, IN_A_ROW);
      for (const [index, provider] of all.entries()) {
        const took = await triedBy(provider.name, () => times(provider, IN_A_ROW));
        if (took === undefined) continue;
        rows[index]?.launch.rounds.push({ took, plain: launches });
        rows[index]?.connect.rounds.push({ took, plain: connections });
        await settled(stack.pid);
      }
    }
  } finally {
    await running.close();
  }
  return rows.flatMap((one) => [one.launch, one.connect]);
}

async function together(): Promise<void> {
  const effort = { rounds: Math.max(2, Math.round(RUNS / 3)), samplesMax: RUNS };
  for (const one of await atOnce(effort)) showRow(one);
}

/** In ms: until the last is open, from then until the last has done its work, and both. */
type TenTimes = Record<'ready' | 'work' | 'both', number>;

/** A page of 20 pictures and 100 evaluations in each of ten browsers. */
export async function atOnce(effort: Effort, peers: readonly Peer[] = []): Promise<Row[]> {
  await using site = await pictures();
  await using stack = await boot({ env: SPARES, isDirect: true });
  const unrecorded = sessionsOf(stack, { recordSession: false });
  const of = (provider: Named, ids: Record<keyof TenTimes, RowId>, peer?: string) => ({
    provider,
    rows: {
      ready: rowOf(ids.ready, peer),
      work: rowOf(ids.work, peer),
      both: rowOf(ids.both, peer),
    },
  });
  const variants = [
    of(sessionsOf(stack), RECORDED),
    of(unrecorded, LOGGED),
    ...peers.map((provider) => of(provider, RECORDED, provider.name)),
  ];
  const ten = async (provider: Named, open: Open) => {
    await settled(stack.pid);
    return await triedBy(provider.name, () => tenOf(open, site.url));
  };
  await ten(unrecorded, connectTo(unrecorded));
  for (let round = 0; round < effort.rounds; round += 1) {
    const plain = await ten(unrecorded, async () => closing(await launchPlain()));
    for (const { provider, rows } of variants) {
      const took = await ten(provider, connectTo(provider));
      if (took === undefined || plain === undefined) continue;
      for (const part of ['ready', 'work', 'both'] as const) {
        rows[part].rounds.push({ took: [took[part]], plain: [plain[part]] });
      }
    }
  }
  return variants.flatMap(({ rows }) => [rows.ready, rows.work, rows.both]);
}

/** Opens a browser; `end` ends it. */
type Open = () => Promise<{ browser: Browser; end(): Promise<unknown> }>;

function connectTo(provider: Provider): Open {
  return async () => {
    const { connectUrl, release } = await provider.create();
    const browser = await puppeteer.connect({ browserWSEndpoint: connectUrl });
    const end = async () => {
      await browser.disconnect();
      await release();
    };
    return { browser, end };
  };
}

function closing(browser: Browser) {
  return { browser, end: () => browser.close() };
}

async function tenOf(open: Open, url: string): Promise<TenTimes> {
  const startedAt = performance.now();
  const browsers = await Promise.all(Array.from({ length: AT_ONCE }, open));
  const readyAt = performance.now();
  await Promise.all(
    browsers.map(async ({ browser, end }) => {
      const page = await browser.newPage();
      await page.goto(url);
      for (let count = 0; count < 100; count += 1) await page.evaluate('1 + 1');
      await end();
    }),
  );
  const endedAt = performance.now();
  return { ready: readyAt - startedAt, work: endedAt - readyAt, both: endedAt - startedAt };
}

async function memory(): Promise<void> {
  const none = { TABERN_SESSION_SPARES: '0', TABERN_CHROME_SPARES: '0' };
  await using stack = await boot({ env: { ...LOCAL, ...none }, isDirect: true });
  await stack.runnerPid();
  await sleep(SETTLED_MS);
  const idle = ours(stack);
  console.log(`idle, all processes but Chrome's: ${(idle / MIB).toFixed(0)} MB (<= 220)`);
  const sessions = await Promise.all(
    Array.from({ length: AT_ONCE }, () => stack.call<Session>('/v1/sessions', { json: {} })),
  );
  const clients = await Promise.all(sessions.map(({ connectUrl }) => connected(connectUrl)));
  await sleep(REST_MS);
  const each = (ours(stack) - idle) / AT_ONCE;
  console.log(`for each session, beside Chrome: ${(each / MIB).toFixed(1)} MB`);
  for (const client of clients) client.terminate();
}

/** Proportional memory of all processes but those of Chrome and of its jails, in bytes. */
function ours({ pid }: Stack): number {
  const own = familyOf(pid).filter(({ command }) => !CHROMES.test(command));
  return own.reduce((sum, one) => sum + proportional(one.pid), 0);
}

function proportional(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1024;
}

/** The time of a launch, in milliseconds, without its end. */
async function opened(launch: () => Promise<{ version(): unknown; close(): Promise<void> }>) {
  const before = performance.now();
  const browser = await launch();
  await browser.version();
  const took = performance.now() - before;
  await browser.close();
  return took;
}

/** From the create to the response, in milliseconds. No browser of a session is left then. */
async function firstAnswer(stack: Stack): Promise<number> {
  const took = await firstOf(sessionsOf(stack));
  await until(async () => {
    const [running] = await stack.call<unknown[]>('/v1/sessions?status=RUNNING');
    return running === undefined;
  });
  return took;
}

async function connected(url: string): Promise<WebSocket> {
  const client = new WebSocket(url, { perMessageDeflate: false });
  await once(client, 'open');
  return client;
}

function launchPlain(): Promise<Browser> {
  return puppeteer.launch({ executablePath: CHROME, headless: true, args: ARGS });
}

async function pictures() {
  const dot = Buffer.from('R0lGODlhAQABAAAAACwAAAAAAQABAAA=', 'base64');
  const html = Array.from({ length: 20 }, (_, n) => `<img src="/${n}.gif">`).join('');
  const server = createServer((request, response) => {
    const isPage = request.url === '/';
    response.setHeader('content-type', isPage ? 'text/html' : 'image/gif');
    response.end(isPage ? html : dot);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}
