/**
 * `node test/bench/sessions.ts [runs] [warm
 * cold
 * together
 * memory]`: the time until a session responds to its first command, with spares and without; ten
 * sessions at once; and memory. Each beside its baseline in the same run: puppeteer.launch and
 * playwright's launch of the same Chrome. Read the ratios.
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
import { boot, type Stack } from '../support/service/stack.ts';
import { show, timed } from './support/figures.ts';
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

const parts = { warm, cold, together, memory };
for (const [name, part] of Object.entries(parts)) {
  if ((process.argv[3] ?? name) === name) await part();
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

/** In sequence: none is measured while the Chrome of another still ends. */
async function cold(): Promise<void> {
  const none = { TABERN_SESSION_SPARES: '0', TABERN_CHROME_SPARES: '0' };
  await using stack = await boot({ env: { ...LOCAL, ...none }, isDirect: true });
  await settled(stack.pid);
  await firstAnswer(stack);
  const launch = () => chromium.launch({ executablePath: CHROME, args: ARGS });
  const launchPage = async () => {
    const browser = await launch();
    await browser.newPage();
    return browser;
  };
  const [plain, withPage, took]: [number[], number[], number[]] = [[], [], []];
  for (let run = 0; run < RUNS; run += 1) {
    plain.push(await opened(launch));
    withPage.push(await opened(launchPage));
    took.push(await firstAnswer(stack));
    await until(() => familyOf(stack.pid).every(({ command }) => !CHROMES.test(command)));
  }
  show("playwright's launch", plain);
  show('create -> first answer, no spares', took, plain);
  show("playwright's launch and a page, which a session has too", withPage);
  show('create -> first answer, no spares', took, withPage);
}

/** A page of 20 pictures and 100 evaluations in each of ten browsers. */
async function together(): Promise<void> {
  await using site = await pictures();
  await using stack = await boot({ env: LOCAL, isDirect: true });
  await settled(stack.pid);
  const work = async (browser: Browser): Promise<void> => {
    const page = await browser.newPage();
    await page.goto(site.url);
    for (let count = 0; count < 100; count += 1) await page.evaluate('1 + 1');
    await browser.close();
  };
  const all = async (open: () => Promise<Browser>): Promise<number> => {
    await settled(await stack.runnerPid());
    const [took = 0] = await timed(1, async () => {
      await Promise.all(Array.from({ length: AT_ONCE }, async () => work(await open())));
    });
    return took;
  };
  const connect = (recordSession: boolean) => async (): Promise<Browser> => {
    const json = { browserSettings: { recordSession } };
    const { connectUrl } = await stack.call<Session>('/v1/sessions', { json });
    return await puppeteer.connect({ browserWSEndpoint: connectUrl });
  };
  await all(connect(false));
  const [plain, logged, recorded]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < Math.max(2, Math.round(RUNS / 3)); round += 1) {
    plain.push(await all(launchPlain));
    logged.push(await all(connect(false)));
    recorded.push(await all(connect(true)));
  }
  show(`${AT_ONCE} x puppeteer.launch at once`, plain);
  show(`${AT_ONCE} sessions at once, with logs`, logged, plain);
  show(`${AT_ONCE} sessions at once, with logs and recordings`, recorded, plain);
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

/** From the create to the response, in milliseconds. The session has ended then. */
async function firstAnswer(stack: Stack): Promise<number> {
  const before = performance.now();
  const { id, connectUrl } = await stack.call<Session>('/v1/sessions', { json: {} });
  const client = await connected(connectUrl);
  client.send('{"id":1,"method":"Browser.getVersion"}');
  await once(client, 'message');
  const took = performance.now() - before;
  client.terminate();
  await until(async () => {
    return (await stack.call<{ status: string }>(`/v1/sessions/${id}`)).status === 'COMPLETED';
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
