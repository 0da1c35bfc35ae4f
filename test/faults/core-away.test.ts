/**
 * Core is killed under live sessions and comes back: no session and no context is lost, a handler
 * runs once, and what a session left that ended meanwhile is there afterwards, with a log that is
 * longer than what a runner has in memory. A runner that is killed for good is lost when its time
 * has passed.
 */
import { globSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { type Browser, chromium, type Page } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../proto/common/must.ts';
import { listen } from '../runner/browser/lab.ts';
import { ended, type Invocation, invoke, publish } from '../support/clients/functions.ts';
import { until } from '../support/poll.ts';
import { sized } from '../support/whole.ts';
import { type Apart, startApart } from './apart.ts';

const test = suite('faults/core-away');
/** Away for more than a lease; in a whole run also for less. */
const ROUNDS = sized(
  [{ leaseMs: 5_000, awayMs: [12_000] }],
  [{ leaseMs: 15_000, awayMs: [5_000, 35_000, 120_000] }],
);
const TYPING = sized(2, 10);
const LIMIT_MS = 120_000;
const SETTINGS = {
  TABERN_SWEEP_MS: '200',
  TABERN_SESSION_GRACE_MS: '200',
  TABERN_SESSIONS_MAX: String(TYPING + 4),
  TABERN_KEY_PAIRS: '0',
};

type Session = { id: string; status: string; connectUrl: string; endReason?: string };

/** A page to type into, which keeps what it was sent in a cookie; and the count of a handler. */
async function openSite() {
  const counts = new Map<string, number>();
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const server = createServer(async ({ url = '/' }, response) => {
    counts.set(url, (counts.get(url) ?? 0) + 1);
    if (url === '/hold') await released;
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end(`<title>typed</title><input autofocus
      oninput="document.cookie = 'typed=' + this.value.length + '; max-age=9999'">`);
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    counts,
    release,
    [Symbol.dispose]() {
      release();
      server.close();
      server.closeAllConnections();
    },
  };
}

const create = (apart: Apart, json: object = {}) => apart.call<Session>('/v1/sessions', { json });
const read = (apart: Apart, id: string) => apart.call<Session>(`/v1/sessions/${id}`);

type Typing = Session & { browser: Browser; page: Page; typed(): number; stop(): Promise<void> };

/** A session whose client types until it is stopped. */
async function type(apart: Apart, url: string, json: object = {}): Promise<Typing> {
  const session = await until(() => create(apart, json).catch(() => undefined), LIMIT_MS);
  const browser = await chromium.connectOverCDP(session.connectUrl, { timeout: LIMIT_MS });
  const page = must(browser.contexts()[0]?.pages()[0], 'the default page');
  page.setDefaultTimeout(LIMIT_MS);
  await page.goto(url);
  let count = 0;
  const over = new AbortController();
  const typing = (async () => {
    while (!over.signal.aborted) {
      await page.locator('input').pressSequentially('a');
      count += 1;
    }
  })();
  typing.catch(() => over.abort()); // `stop` rejects with it
  await until(() => count > 0, LIMIT_MS);
  return {
    ...session,
    browser,
    page,
    typed: () => count,
    async stop() {
      over.abort();
      await typing; // rejects when a key press failed
    },
  };
}

const COUNTING = (url: string) => ({
  'package.json': '{"name":"counting","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
defineFn('counting', async () => {
  await fetch('${url}/begun');
  await (await fetch('${url}/hold')).text();
  return 'whole';
});
`,
});

/** The length of the text that the context's cookie names. */
async function typedIn(apart: Apart, contextId: string, url: string): Promise<number> {
  const browserSettings = { context: { id: contextId, persist: false } };
  const { connectUrl } = await create(apart, { browserSettings });
  const browser = await chromium.connectOverCDP(connectUrl, { timeout: LIMIT_MS });
  const page = must(browser.contexts()[0]?.pages()[0], 'the default page');
  await page.goto(url);
  const cookie = String(await page.evaluate('document.cookie'));
  await browser.close();
  return Number(/typed=(\d+)/.exec(cookie)?.[1]);
}

type Entry = {
  method: string;
  request: { params: { args?: { value?: string }[] } };
};

/** Of console lines, each batch more than waits in memory, together more than ever did: 10 MiB. */
const BATCHES = 4;
const BATCH = 50;
const LINE_CHARS = 52_000;
/** Of a batch. */
const FILES_MIN = 7;

/** The files in which parts of logs wait for core, of all sessions. */
function spooled({ dataDir }: Apart): string[] {
  return globSync('run/*/log-*/*', { cwd: dataDir });
}

/** Prints numbered lines of a page, while core is away, until they wait on the runner's disk. */
async function print(apart: Apart, { page }: Typing): Promise<void> {
  for (let batch = 0; batch < BATCHES; batch += 1) {
    const own = { from: batch * BATCH, count: BATCH, chars: LINE_CHARS };
    await page.evaluate(({ from, count, chars }) => {
      for (let n = from; n < from + count; n += 1) console.log(`${n} `.padEnd(chars, '.'));
    }, own);
    await until(() => spooled(apart).length >= (batch + 1) * FILES_MIN, LIMIT_MS);
  }
}

/** The log of the session is whole, and nothing waits any more. */
async function logged(apart: Apart, { id, typed }: Typing): Promise<void> {
  const log = await apart.call<Entry[]>(`/v1/sessions/${id}/logs`);
  const pressed = log.filter(({ method }) => method === 'Input.dispatchKeyEvent');
  assert.is(pressed.length, 2 * typed(), 'each key went down and up');
  const printed = log.filter(({ method }) => method === 'Runtime.consoleAPICalled');
  assert.equal(
    printed.map(({ request }) => Number.parseInt(request.params.args?.[0]?.value ?? '', 10)),
    Array.from({ length: BATCHES * BATCH }, (_, n) => n),
  );
  assert.equal(spooled(apart), []);
}

/** One absence of core under the sessions that type. */
async function beAway(apart: Apart, site: string, awayMs: number, live: readonly Typing[]) {
  const { id: contextId } = await apart.call<Session>('/v1/contexts', { json: {} });
  const context = { id: contextId, persist: true };
  const leaving = await type(apart, site, { browserSettings: { context } });
  const before = live.map(({ typed }) => typed());
  await apart.end('core');
  const leftAfter = leaving.typed();
  await print(apart, leaving);
  await until(() => leaving.typed() > leftAfter + 3, LIMIT_MS);
  await leaving.stop();
  await leaving.browser.close(); // the session ends while core is away
  const refused = await apart.fetch('/v1/sessions', { json: {} });
  assert.is(refused.status, 503, await refused.text());
  assert.ok(Number(refused.headers.get('retry-after')) > 0);
  await pause(awayMs); // the length of the absence is the subject
  apart.start('core');
  await until(() => read(apart, leaving.id).catch(() => undefined), LIMIT_MS);
  for (const [n, { id, typed }] of live.entries()) {
    const { status, endReason } = await read(apart, id);
    assert.is(status, 'RUNNING', `${endReason} after ${awayMs} ms\n${apart.logs()}`);
    assert.ok(typed() > must(before[n], 'a count'));
  }
  const over = await until(async () => {
    const session = await read(apart, leaving.id);
    return session.status !== 'RUNNING' && session;
  }, LIMIT_MS);
  assert.is(over.status, 'COMPLETED', `${over.endReason}\n${apart.logs()}`);
  assert.is(await typedIn(apart, contextId, site), leaving.typed());
  await logged(apart, leaving);
  await recorded(apart, leaving);
}

async function recorded(apart: Apart, { id }: Session): Promise<void> {
  const path = `/v1/sessions/${id}/recording/downloads`;
  await apart.call(path, { method: 'POST' });
  const [video] = await until(async () => {
    const { downloads } = await apart.call<{
      downloads: { status: string; downloadUrl?: string }[];
    }>(path);
    const isMade = downloads.length > 0 && downloads.every(({ status }) => status === 'COMPLETED');
    return isMade && downloads;
  }, LIMIT_MS);
  const answer = await fetch(must(video?.downloadUrl, 'a link'));
  assert.ok((await answer.arrayBuffer()).byteLength > 1_000);
}

for (const { leaseMs, awayMs } of ROUNDS) {
  test(`core is away for ${awayMs} ms under live sessions, and nothing is lost`, async () => {
    using site = await openSite();
    await using apart = await startApart({ ...SETTINGS, TABERN_LEASE_MS: String(leaseMs) });
    const { counting = '' } = await publish(apart, COUNTING(site.url));
    const live: Typing[] = [];
    for (let n = 0; n < TYPING; n += 1) live.push(await type(apart, site.url));
    const { id } = await invoke(apart, counting);
    await until(() => site.counts.has('/hold'), LIMIT_MS);
    for (const ms of awayMs) await beAway(apart, site.url, ms, live);
    const held = await apart.call<Invocation>(`/v1/functions/invocations/${id}`);
    assert.is(held.status, 'RUNNING', JSON.stringify(held.cause));
    site.release();
    const { results, cause } = await ended(apart, id);
    assert.is(results, 'whole', JSON.stringify(cause));
    assert.is(site.counts.get('/begun'), 1, 'the handler ran once');
    for (const session of live) {
      await session.stop();
      const value = await session.page.locator('input').inputValue();
      assert.is(value.length, session.typed());
      await session.browser.close();
      await until(async () => (await read(apart, session.id)).status === 'COMPLETED', LIMIT_MS);
    }
  });
}

test('a runner that was killed for good is lost, with its session and invocation', async () => {
  using site = await openSite();
  const env = { ...SETTINGS, TABERN_LEASE_MS: '5000', TABERN_LOST_MS: '15000' };
  await using apart = await startApart(env);
  const { counting = '' } = await publish(apart, COUNTING(site.url));
  const session = await type(apart, site.url);
  const { id } = await invoke(apart, counting);
  await until(() => site.counts.has('/hold'), LIMIT_MS);
  await session.stop();
  await apart.end('runner');
  const over = await until(async () => {
    const one = await read(apart, session.id);
    return one.status !== 'RUNNING' && one;
  }, LIMIT_MS);
  assert.is(over.status, 'ERROR');
  const { status, cause } = await ended(apart, id);
  assert.is(status, 'FAILED');
  assert.equal(cause, { code: 'INTERNAL_ERROR', message: 'the runner was lost' });
  assert.is(site.counts.get('/begun'), 1);
});

test.run();
