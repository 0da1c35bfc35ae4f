/**
 * `node test/bench/recording.ts [rounds]`: a page with 100 sub-resources through the whole service,
 * without a log, with the protocol log, and with log and recording, against the same Chrome over
 * its own pipe without the service, interleaved in one run. Two floors stand beside them, the same
 * Chrome with its sandbox and the least between a client and a Chrome without a port
 * (support/forward-child.ts), and two comparisons: the same while its client captures each drawing
 * of the page, or ten a second. These are no floors, as the client that measures receives the
 * pictures. Then the cost of encoding. Read the ratios.
 */
import { readdir, readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium, type Page } from 'playwright-core';
import { must } from '../../proto/common/must.ts';
import { openEncoder } from '../../runner/sessions/recording/encoder.ts';
import { launchOne, listen, log } from '../runner/browser/lab.ts';
import { boot } from '../support/service/stack.ts';
import { tempDirectory } from '../support/temp.ts';
import { startDirect, startForward } from './relay.ts';
import { timed } from './support/figures.ts';
import { connectionsTo, type Named, type Peer, sessionsOf, triedBy } from './support/providers.ts';
import { type Effort, type Row, rowOf, showRow } from './support/rows.ts';

const CHROME = process.env['TABERN_CHROME'] ?? '/usr/lib/chromium/chromium-headless-shell';
const ROUNDS = Number(process.argv[2] ?? 12);
const RESOURCES = 100;
/** Of each variant in a round. */
const LOADS = 4;
/**
 * Until the remaining work of a page and of its recording is over, so that the next page is not
 * delayed.
 */
const REST_MS = 1_000;
/** Between two frames of a recording, while a page draws often. */
const FRAME_MS = 100;
/** The encoded pictures: ten a second for this long. */
const SECONDS = 20;
const SIZE = { width: 1280, height: 800 };
/**
 * A pixel. An SVG picture is a document for Chrome: with a hundred of them, each load of the page
 * took longer in the same process, of a plain Chrome too (0.5 to 6.6 s of CPU in 25 loads).
 */
const IMAGE = Buffer.from('R0lGODlhAQABAAAAACwAAAAAAQABAAA=', 'base64');
const JPEG = { format: 'jpeg', quality: 60 } as const;
/** Ticks in a second, of /proc. */
const TICKS = 100;

/** A peer whose page is prepared once, before it is measured. */
type Prepared = Peer & { prepare?(page: Page): Promise<void> };

if (import.meta.main) {
  console.log(`a page with ${RESOURCES} sub-resources, ${ROUNDS} rounds`);
  await using sandboxed = await startDirect();
  await using least = await startForward();
  await using captured = await startForward();
  await using sampled = await startForward();
  const floors = [
    { name: 'with its sandbox', ...connectionsTo(sandboxed.url) },
    { name: 'the least between', ...connectionsTo(least.url) },
    { name: 'the least between, captured', ...connectionsTo(captured.url), prepare: capture },
    { name: 'the least between, ten a second', ...connectionsTo(sampled.url), prepare: sample },
  ];
  for (const row of await pages({ rounds: ROUNDS, samplesMax: 1 }, floors)) showRow(row);
  await encoding();
}

/** The page in a session of each kind, of each peer, and directly. */
export async function pages(effort: Effort, peers: readonly Prepared[] = []): Promise<Row[]> {
  await using parts = new AsyncDisposableStack();
  const site = createServer(answer);
  const url = `http://127.0.0.1:${await listen(site)}/`;
  parts.defer(() => void site.close().closeAllConnections());
  const launched = await chromium.launch({ executablePath: CHROME, args: ['--no-sandbox'] });
  parts.defer(() => launched.close());
  const direct = await launched.newPage();
  const stack = parts.use(await boot({ env: { TABERN_CHROME: CHROME }, isDirect: true }));
  const of = (settings: object) => sessionsOf(stack, settings);
  const variants: { provider: Named & Partial<Prepared>; row: Row }[] = [
    { provider: of({ logSession: false, recordSession: false }), row: rowOf('pageBare') },
    { provider: of({ recordSession: false }), row: rowOf('pageLogged') },
    { provider: of({}), row: rowOf('page') },
    ...peers.map((provider) => ({ provider, row: rowOf('page', provider.name) })),
  ];
  const opened: { page: Page; provider: Named; row: Row }[] = [];
  for (const { provider, row } of variants) {
    const page = await triedBy(provider.name, () => pageOf(provider, parts));
    if (page === undefined) continue;
    await provider.prepare?.(page);
    opened.push({ page, provider, row });
  }
  let count = 0;
  const load = async (page: Page): Promise<number[]> => {
    await sleep(REST_MS);
    count += 1;
    return await timed(1, async () => void (await page.goto(`${url}?${count}`)));
  };
  const samples = Math.min(LOADS, effort.samplesMax);
  for (let round = -2; round < effort.rounds; round += 1) {
    const rounds = opened.map((one) => ({ ...one, took: [] as number[] }));
    const plain: number[] = [];
    for (let sample = 0; sample < (round < 0 ? 1 : samples); sample += 1) {
      plain.push(...(await load(direct)));
      for (const { page, provider, took } of rounds) {
        took.push(...((await triedBy(provider.name, () => load(page))) ?? []));
      }
    }
    if (round < 0) continue; // the first rounds warm the caches
    for (const { row, took } of rounds) if (took.length > 0) row.rounds.push({ took, plain });
  }
  return opened.map(({ row }) => row);
}

async function pageOf(provider: Named, parts: AsyncDisposableStack): Promise<Page> {
  const { connectUrl, release } = await provider.create();
  const browser = await chromium.connectOverCDP(connectUrl);
  const end = async () => {
    await browser.close();
    await release();
  };
  parts.defer(async () => void (await triedBy(provider.name, end)));
  // of the default context, as a session's: other contexts have no cache on the disk
  const context = must(browser.contexts()[0], 'a default context');
  return context.pages()[0] ?? (await context.newPage());
}

/** Every drawing, as far as Chrome follows. */
async function capture(page: Page): Promise<void> {
  await screencast(page, ({ sessionId }, send) => {
    send('Page.screencastFrameAck', { sessionId });
  });
}

/** A new drawing each 100 ms at most, in single captures, as of a page that draws often. */
async function sample(page: Page): Promise<void> {
  let last = '';
  await screencast(page, ({ data, sessionId }, send) => {
    if (data === last) {
      send('Page.screencastFrameAck', { sessionId });
      return;
    }
    last = data;
    send('Page.stopScreencast');
    setTimeout(() => send('Page.startScreencast', JPEG), FRAME_MS);
  });
}

type Screencast = 'Page.startScreencast' | 'Page.stopScreencast' | 'Page.screencastFrameAck';
type Send = (method: Screencast, params?: object) => void;
type Drawn = { data: string; sessionId: number };

async function screencast(page: Page, onFrame: (frame: Drawn, send: Send) => void): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const send: Send = (method, params) => {
    session.send(method, params as never).catch(() => undefined); // it has ended
  };
  session.on('Page.screencastFrame', (frame) => onFrame(frame, send));
  await session.send('Page.startScreencast', JPEG);
}

async function encoding(): Promise<void> {
  await using dir = tempDirectory('tabern-bench-');
  const pids: number[] = [];
  await using encoder = openEncoder({
    async launch(wanted) {
      const before = new Set(await descendants());
      const chrome = await launchOne({ runDir: dir.path, allow: [], program: CHROME, ...wanted });
      pids.push(...(await descendants()).filter((pid) => !before.has(pid)));
      return chrome;
    },
    log,
  });
  const pictures = await drawn();
  const frames = Array.from({ length: SECONDS * 10 }, (_, index) => ({
    at: index * 100,
    lasts: 100,
    jpeg: must(pictures[index % pictures.length], 'a picture'),
  }));
  await encoder.encode({ ...SIZE, frames: frames.slice(0, 10) }); // starts its Chrome
  const [cpu, own, at] = [await cpuOf(pids), process.cpuUsage(), performance.now()];
  const { segment } = await encoder.encode({ ...SIZE, frames });
  const wallMs = performance.now() - at;
  const cpuS = (await cpuOf(pids)) - cpu;
  const ownS = (process.cpuUsage(own).user + process.cpuUsage(own).system) / 1e6;
  const per = (seconds: number) => (seconds / SECONDS).toFixed(3);
  console.log(`${frames.length} pictures, ${SECONDS} s of session: ${wallMs.toFixed(0)} ms`);
  console.log(`CPU per second of session: encoder ${per(cpuS)} s, this process ${per(ownS)} s`);
  console.log(`${(segment.length / SECONDS / 1024).toFixed(0)} KiB per second`);
}

/** Pictures as of a session: text that scrolls. */
async function drawn(): Promise<Buffer[]> {
  const browser = await chromium.launch({ executablePath: CHROME, args: ['--no-sandbox'] });
  try {
    const page = await browser.newPage({ viewport: SIZE });
    const line = 'The quick brown fox jumps over the lazy dog. '.repeat(40);
    await page.setContent(`<body>${`<p>${line}</p>`.repeat(40)}`);
    const made: Buffer[] = [];
    for (let step = 0; step < 40; step += 1) {
      await page.evaluate(`scrollTo(0, ${step * 40})`);
      made.push(await page.screenshot({ type: 'jpeg', quality: 60 }));
    }
    return made;
  } finally {
    await browser.close();
  }
}

function answer({ url = '/' }: IncomingMessage, response: ServerResponse): void {
  const isPage = url.startsWith('/?');
  response.writeHead(200, { 'content-type': isPage ? 'text/html' : 'image/gif' });
  const ofImage = (_: unknown, index: number) =>
    `<img width="20" height="20" src="/${url.slice(2)}-${index}">`;
  const images = Array.from({ length: RESOURCES }, ofImage).join('');
  response.end(isPage ? `<title>page</title>${images}` : IMAGE);
}

/** Of this process and its descendants. */
async function descendants(): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const parents = new Map<number, number>();
  for (const pid of pids) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    parents.set(pid, Number(stat.slice(stat.lastIndexOf(')') + 4).split(' ', 1)[0]));
  }
  const isBelow = (pid: number): boolean =>
    pid > 1 && (pid === process.pid || isBelow(parents.get(pid) ?? 0));
  return pids.filter((pid) => pid !== process.pid && isBelow(pid));
}

async function cpuOf(pids: readonly number[]): Promise<number> {
  let ticks = 0;
  for (const pid of pids) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    ticks += Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
  }
  return ticks / TICKS;
}
