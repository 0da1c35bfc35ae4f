/**
 * `node test/bench/relay.ts [rounds] [measure...]`: the cost of the relay for a client, with and
 * without the protocol log, against the same Chrome over its own WebSocket port, against a proxy
 * before that port that only copies bytes, and against the least that a Chrome without a port needs
 * (support/forward-child.ts), in turns in one run. Read the ratios: the times depend on the machine
 * and its load.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { chown, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { must } from '../../proto/common/must.ts';
import { listen } from '../runner/browser/lab.ts';
import { until } from '../support/poll.ts';
import { selfSigned } from '../support/servers/certificates.ts';
import { boot, type Stack } from '../support/service/stack.ts';
import { type Client, openClient } from './support/cdp.ts';
import { quantile, timed } from './support/figures.ts';
import { flagsOf, NOBODY } from './support/plain-chrome.ts';
import { type Peer, sessionsOf, triedBy } from './support/providers.ts';
import { type Effort, type Row, type RowId, rowOf } from './support/rows.ts';
import { settled } from './support/settled.ts';

const CHROME = process.env['TABERN_CHROME'] ?? '/usr/lib/chromium/chromium-headless-shell';
const ROUNDS = Number(process.argv[2] ?? 6);
/** All when empty. */
const WANTED = process.argv.slice(3);
/** After each turn: by then its remaining work, the log above all, is over. */
const REST_MS = 1_000;
const SEQUENTIAL = 300;
const PIPELINED = 1_000;
const WINDOW = 50;
/**
 * Of calls, in windows: until V8 has optimized the code between client and Chrome. A service runs
 * for days; its first thousands of calls take longer.
 */
const WARM_UP = 20_000;
const LARGE = 5;
const LOADS = 5;
const RESOURCES = 100;
/** The delay of a site in the same city. */
const AWAY_MS = 10;
const START_LIMIT_MS = 30_000;

/** Of a relay's process, and of the log that it kept. */
type Used = { cpuMs: number; entries: number; bytes: number; compressed: number };
type Started = AsyncDisposable & { url: string; used?(): Promise<Used> };
/** By measure and round: milliseconds each; for pipelined and large calls, how many in a second. */
type Figures = Record<Measure, number[][]>;
type Variant = {
  name: string;
  peer?: string;
  client: Client;
  figures: Figures;
  used?: Started['used'];
  /** By measure and round: of the process between client and Chrome, until the end of its rest. */
  cpuMs: Figures;
};
type Measure = 'evaluate' | 'pipelined' | 'large' | PageKind;
type PageKind = 'page' | 'securePage' | 'farPage';
type Sites = Record<PageKind, string>;

if (import.meta.main) await main();

async function main(): Promise<void> {
  await using parts = new AsyncDisposableStack();
  const sites = await openSites(parts);
  const effort = { rounds: ROUNDS, samplesMax: SEQUENTIAL };
  const all = Object.entries(measures(sites, effort));
  const unknown = WANTED.find((name) => all.every(([known]) => known !== name));
  if (unknown !== undefined) {
    throw new Error(`no measure ${unknown}: ${all.map(([name]) => name).join(', ')}`);
  }
  const wanted = all.filter(([name]) => WANTED.length === 0 || WANTED.includes(name));
  const straight = parts.use(await startDirect());
  const variants = await clients(parts, [
    ['direct', straight],
    ['a proxy that only copies', parts.use(await startCopy(straight.url))],
    ['the least between a client and a pipe', parts.use(await startForward())],
    ['the least that also judges and logs', parts.use(await startForward('logs'))],
    ['relay, no log', parts.use(await startRelay('plain'))],
    ['relay with log', parts.use(await startRelay('logs'))],
    ['service: gateway, relay, no log', await startService(parts, { logSession: false })],
    ['service: gateway, relay with log', await startService(parts)],
    ['the same, with a recording', await startService(parts, { recordSession: true })],
  ]);
  await inTurns(variants, wanted, effort);
  const [direct, ...others] = variants;
  show(must(direct, 'direct'), undefined);
  for (const other of others) {
    show(other, must(direct, 'direct').figures);
    if (other.used === undefined) continue;
    const { entries, bytes, compressed } = await other.used();
    if (entries > 0)
      console.log(`  log: ${entries} entries, ${mib(bytes)}, kept in ${mib(compressed)}`);
  }
}

/** Round trips through the whole service, with log and without, and through peers. */
export async function roundTrips(effort: Effort, peers: readonly Peer[] = []): Promise<Row[]> {
  await using parts = new AsyncDisposableStack();
  const straight = parts.use(await startDirect());
  const stack = parts.use(await boot({ isDirect: true }));
  await settled(stack.pid);
  const [direct, logged, unlogged] = await clients(parts, [
    ['direct', straight],
    ['with log', await sessionOf(stack, {})],
    ['without log', await sessionOf(stack, { logSession: false })],
  ]);
  const theirs = await clientsOf(parts, peers);
  const all = [direct, logged, unlogged].map((one) => must(one, 'a variant'));
  const { evaluate, pipelined } = measures({ page: '', securePage: '', farPage: '' }, effort);
  await inTurns([...all, ...theirs], Object.entries({ evaluate, pipelined }), effort);
  const row = (id: RowId, measure: Measure, of: Variant | undefined): Row => {
    const { figures, peer } = must(of, 'a variant');
    const plain = must(direct, 'direct').figures[measure];
    const rounds = figures[measure].map((took, round) => ({ took, plain: plain[round] ?? [] }));
    return { ...rowOf(id, peer), rounds: rounds.filter(({ took }) => took.length > 0) };
  };
  return [
    row('evaluate', 'evaluate', logged),
    row('evaluateUnlogged', 'evaluate', unlogged),
    row('pipelined', 'pipelined', logged),
    ...theirs.flatMap((one) => [
      row('evaluate', 'evaluate', one),
      row('pipelined', 'pipelined', one),
    ]),
  ];
}

/** A client of a session of each peer that gives one. */
async function clientsOf(parts: AsyncDisposableStack, peers: readonly Peer[]): Promise<Variant[]> {
  const found: Variant[] = [];
  for (const peer of peers) {
    const client = await triedBy(peer.name, async () => {
      const session = await peer.create();
      parts.defer(async () => void (await triedBy(peer.name, () => session.release())));
      return await openClient(session.connectUrl);
    });
    if (client === undefined) continue;
    const end = async () => await client[Symbol.asyncDispose]();
    parts.defer(async () => void (await triedBy(peer.name, end)));
    const figures = { figures: noFigures(), cpuMs: noFigures() };
    found.push({ name: peer.name, peer: peer.name, client, ...figures });
  }
  return found;
}

/** A client of each. */
async function clients(
  parts: AsyncDisposableStack,
  started: readonly [string, Pick<Started, 'url' | 'used'>][],
): Promise<Variant[]> {
  return await Promise.all(
    started.map(async ([name, { url, used }]) => {
      const client = parts.use(await openClient(url));
      return { name, client, used, figures: noFigures(), cpuMs: noFigures() };
    }),
  );
}

type Turn = [measure: string, (client: Client) => Promise<number[]>];

async function inTurns(
  variants: readonly Variant[],
  turns: readonly Turn[],
  { rounds }: Effort,
): Promise<void> {
  const tried = async ({ peer, client }: Variant, [, measure]: Turn): Promise<number[]> =>
    (await triedBy(peer, () => measure(client))) ?? [];
  for (const variant of variants) {
    await triedBy(variant.peer, () => variant.client.evaluateMany('1', WARM_UP, WINDOW));
    for (const turn of turns) await tried(variant, turn);
  }
  await sleep(REST_MS);
  for (const turn of turns) {
    const measure = turn[0] as Measure;
    for (let round = 0; round < rounds; round++) {
      for (const variant of variants) {
        const before = await variant.used?.();
        variant.figures[measure].push(await tried(variant, turn));
        await sleep(REST_MS);
        const after = await variant.used?.();
        if (before && after) variant.cpuMs[measure].push([after.cpuMs - before.cpuMs]);
      }
    }
  }
}

function noFigures(): Figures {
  return { evaluate: [], pipelined: [], large: [], page: [], securePage: [], farPage: [] };
}

async function openSites(parts: AsyncDisposableStack): Promise<Sites> {
  return {
    page: await openSite(createServer(answerPage), 'http', parts),
    securePage: await openSite(createSecureServer(await selfSigned(), answerPage), 'https', parts),
    farPage: await openSite(createServer(answerLate), 'http', parts),
  };
}

async function openSite(
  server: ReturnType<typeof createServer>,
  scheme: 'http' | 'https',
  parts: AsyncDisposableStack,
): Promise<string> {
  parts.defer(() => void server.close().closeAllConnections());
  return `${scheme}://127.0.0.1:${await listen(server)}/`;
}

/** One turn of each. */
function measures(
  sites: Sites,
  { samplesMax }: Pick<Effort, 'samplesMax'>,
): Record<Measure, (client: Client) => Promise<number[]>> {
  const load = (kind: PageKind) => (client: Client) =>
    timed(LOADS, () => client.load(`${sites[kind]}?${Math.random()}`));
  return {
    evaluate: (client) => timed(Math.min(SEQUENTIAL, samplesMax), () => client.evaluate('1')),
    async pipelined(client) {
      const took = await timed(1, () => client.evaluateMany('1', PIPELINED, WINDOW));
      return took.map((ms) => (1_000 * PIPELINED) / ms);
    },
    async large(client) {
      const took = await timed(LARGE, () => client.evaluate('"x".repeat(1 << 20)'));
      return took.map((ms) => 1_000 / ms);
    },
    page: load('page'),
    securePage: load('securePage'),
    farPage: load('farPage'),
  };
}

function show({ name, figures, cpuMs }: Variant, direct: Figures | undefined): void {
  const line = (title: string, part: number, of: keyof Figures, digits: number): void => {
    if (figures[of].length === 0) return;
    const value = quantile(figures[of].flat(), part);
    const ratio = direct ? ` = ${(value / quantile(direct[of].flat(), part)).toFixed(2)}x` : '';
    console.log(`  ${title.padEnd(28)} ${value.toFixed(digits).padStart(9)}${ratio}`);
  };
  const cpu = (of: keyof Figures, calls: number): void => {
    if (cpuMs[of].length === 0) return;
    const us = (1_000 * quantile(cpuMs[of].flat(), 0.5)) / calls;
    console.log(`  ${'  its CPU for a call, us'.padEnd(28)} ${us.toFixed(0).padStart(9)}`);
  };
  console.log(name);
  line('evaluate, ms p50', 0.5, 'evaluate', 3);
  line('evaluate, ms p95', 0.95, 'evaluate', 3);
  cpu('evaluate', SEQUENTIAL);
  line(`evaluate, ${WINDOW} at once, /s p50`, 0.5, 'pipelined', 0);
  cpu('pipelined', PIPELINED);
  line('1 MB results, /s p50', 0.5, 'large', 1);
  line(`page of ${RESOURCES}, ms p50`, 0.5, 'page', 1);
  line(`page of ${RESOURCES}, ms p95`, 0.95, 'page', 1);
  line(`https page of ${RESOURCES}, ms p50`, 0.5, 'securePage', 1);
  line(`https page of ${RESOURCES}, ms p95`, 0.95, 'securePage', 1);
  line(`the same ${AWAY_MS} ms away, ms p50`, 0.5, 'farPage', 1);
  line(`the same ${AWAY_MS} ms away, ms p95`, 0.95, 'farPage', 1);
}

function mib(bytes: number): string {
  return `${(bytes / (1 << 20)).toFixed(1)} MiB`;
}

/**
 * Chrome as Playwright and Puppeteer start it, in a session of its own: where Linux schedules by
 * session (autogroup), a process of this session would get a larger share of the processor than
 * theirs. It listens on a separate port. Its sandbox is on, as behind the relay: on some machines
 * the sandbox alone triples a round trip.
 */
export async function startDirect(): Promise<Started> {
  const profile = mkdtempSync(join(tmpdir(), 'tabern-bench-'));
  const flags = [...flagsOf(profile), '--remote-debugging-port=0'];
  const isRoot = process.getuid?.() === 0;
  if (isRoot) await chown(profile, NOBODY, NOBODY);
  const who = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  const child = spawn(CHROME, flags, { stdio: 'ignore', detached: true, ...who });
  const said = await until(async () => {
    const text = await readFile(join(profile, 'DevToolsActivePort'), 'utf8').catch(() => '');
    return text.includes('/devtools/') && text;
  }, START_LIMIT_MS);
  const [port, path] = said.split('\n');
  return {
    url: `ws://127.0.0.1:${port}${path}`,
    async [Symbol.asyncDispose]() {
      await ended(child, () => child.kill());
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

async function startCopy(direct: string): Promise<Started> {
  const url = new URL(direct);
  const { child, said } = await startChild<{ port: number }>('./support/copy-child.ts', url.port);
  url.port = String(said.port);
  return { url: url.href, [Symbol.asyncDispose]: () => ended(child, () => child.disconnect()) };
}

export async function startForward(...kind: 'logs'[]): Promise<Started> {
  const file = './support/forward-child.ts';
  const { child, said } = await startChild<{ port: number }>(file, CHROME, ...kind);
  return startedBy(child, `ws://127.0.0.1:${said.port}/`);
}

async function startRelay(kind: 'plain' | 'logs'): Promise<Started> {
  const { child, said } = await startChild<{ url: string }>('./support/relay-child.ts', kind);
  return startedBy(child, said.url);
}

function startedBy(child: ChildProcess, url: string): Started {
  return {
    url,
    async used() {
      const answer = once(child, 'message');
      child.send('used');
      return (await answer)[0] as Used;
    },
    [Symbol.asyncDispose]: () => ended(child, () => child.disconnect()),
  };
}

async function startChild<Said>(file: string, ...words: string[]) {
  const program = fileURLToPath(new URL(file, import.meta.url));
  const child = fork(program, words, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const [said] = (await once(child, 'message')) as [Said];
  return { child, said };
}

/** The whole service, as `tabern serve` runs it. */
async function startService(
  parts: AsyncDisposableStack,
  settings: object = {},
): Promise<{ url: string }> {
  const stack = parts.use(await boot({ isDirect: true }));
  await settled(stack.pid);
  return await sessionOf(stack, { ignoreCertificateErrors: true, ...settings });
}

/** A session with the same Chrome as directly; without a recording unless its settings have one. */
async function sessionOf(stack: Stack, settings: object): Promise<{ url: string }> {
  const browserSettings = { engine: 'headless-shell', recordSession: false, ...settings };
  const { connectUrl } = await sessionsOf(stack, browserSettings).create();
  return { url: connectUrl };
}

async function ended(child: ChildProcess, end: () => void): Promise<void> {
  const gone = once(child, 'exit');
  end();
  await gone;
}

function answerLate(request: IncomingMessage, response: ServerResponse): void {
  setTimeout(answerPage, AWAY_MS, request, response);
}

/** A page of scripts, styles and pictures, none of which may be cached. */
function answerPage(request: IncomingMessage, response: ServerResponse): void {
  const { pathname } = new URL(request.url ?? '/', 'http://site');
  response.setHeader('cache-control', 'no-store');
  if (pathname !== '/') {
    response.setHeader('content-type', pathname.endsWith('.js') ? 'text/javascript' : 'text/css');
    response.end(`/* ${'x'.repeat(2_000)} */`);
    return;
  }
  const parts = Array.from({ length: RESOURCES }, (_, n) =>
    n % 2 === 0 ? `<script src="/${n}.js"></script>` : `<link rel=stylesheet href="/${n}.css">`,
  );
  response.setHeader('content-type', 'text/html');
  response.end(`<title>a page</title>${parts.join('\n')}`);
}
