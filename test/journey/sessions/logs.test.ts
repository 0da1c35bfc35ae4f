/** The protocol log of a session: readable while it runs and at once after, without secrets. */
import { createServer } from 'node:http';
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { listen } from '../../runner/browser/lab.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import { until } from '../../support/poll.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';

const test = suite('journey/sessions/logs');
const service = shareStack();
/** Ours: an entry is readable a second after it happened; a loaded machine takes longer. */
const LOGGED_LIMIT_MS = 20_000;

/** Fills a page with noise, which no image format compresses. */
const NOISE = `{
  const canvas = document.body.appendChild(document.createElement('canvas'));
  canvas.width = canvas.height = 600;
  const context = canvas.getContext('2d');
  const pixels = context.createImageData(600, 600);
  for (let at = 0; at < pixels.data.length; at++) pixels.data[at] = 255 * Math.random();
  context.putImageData(pixels, 0, 0);
}`;

type Session = { id: string; connectUrl: string; status: string };
type Side = { timestamp: number; rawBody: string };
type Entry = {
  method: string;
  pageId: number;
  sessionId: string;
  timestamp: number;
  frameId?: string;
  loaderId?: string;
  request: Side & { params: Record<string, unknown> };
  response?: Side & { result: Record<string, unknown> };
};

const logsOf = (stack: Stack, id: string) => stack.call<Entry[]>(`/v1/sessions/${id}/logs`);

/** A site with a form, whose responses set a cookie. */
async function openSite() {
  const server = createServer((_, response) => {
    response.setHeader('set-cookie', 'login=the-secret');
    response.setHeader('content-type', 'text/html');
    response.end('<title>a form</title><form method=post><input id=it name=it></form>');
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}/`,
    [Symbol.dispose]: () => void server.close().closeAllConnections(),
  };
}

test('the log of a running session is readable by page and has no secrets', async () => {
  const stack = await service.get();
  using site = await openSite();
  const { id, connectUrl } = await stack.call<Session>('/v1/sessions', { json: {} });
  const browser = await chromium.connectOverCDP(connectUrl);
  const context = must(browser.contexts()[0], 'the default context');
  const first = must(context.pages()[0], 'the default page');
  await context.addCookies([{ name: 'own', value: 'the-secret', url: site.url }]);
  await first.setExtraHTTPHeaders({ 'x-own': 'the-secret' });
  await first.goto(site.url);
  await first.locator('#it').focus();
  await first.keyboard.insertText('the-secret');
  await first.keyboard.press('Z');
  await first.evaluate('console.log("from the page")');
  const second = await context.newPage();
  await second.goto(`${site.url}second`);
  await second.evaluate(NOISE);
  await second.screenshot();
  assert.ok((await context.cookies()).some(({ value }) => value === 'the-secret'));

  const live = await until(async () => {
    const entries = await logsOf(stack, id);
    return entries.some(({ method }) => method === 'Storage.getCookies') && entries;
  }, LOGGED_LIMIT_MS);
  check(live, id, site.url);

  await browser.close();
  const over = await until(async () => {
    const { status } = await stack.call<Session>(`/v1/sessions/${id}`);
    return status === 'COMPLETED';
  }, LOGGED_LIMIT_MS);
  assert.ok(over);
  const all = await logsOf(stack, id);
  assert.equal(all.slice(0, live.length), live);
});

function check(entries: readonly Entry[], id: string, siteUrl: string): void {
  for (const entry of entries) {
    const { method, sessionId, pageId, request, response, timestamp } = entry;
    assert.is(sessionId, id, method);
    assert.ok(Number.isInteger(pageId) && Number.isInteger(timestamp), method);
    for (const side of [request, response ?? request]) {
      assert.ok(typeof JSON.parse(side.rawBody) === 'object', method);
      assert.ok(Number.isInteger(side.timestamp), method);
    }
    assert.ok(typeof request.params === 'object', method);
    if (response) assert.ok(typeof response.result === 'object', method);
    assert.not(JSON.stringify(entry).includes('the-secret'), JSON.stringify(entry));
  }
  const named = (method: string) => entries.filter((entry) => entry.method === method);
  assert.equal(
    named('Page.navigate').map(({ pageId, request }) => [pageId, request.params['url']]),
    [
      [0, siteUrl],
      [1, `${siteUrl}second`],
    ],
  );
  const [navigate] = named('Page.navigate');
  assert.is(navigate?.frameId, navigate?.response?.result['frameId']);
  assert.is(navigate?.loaderId, navigate?.response?.result['loaderId']);
  assert.ok(Number(navigate?.timestamp) >= Number(navigate?.request.timestamp));
  const [said] = named('Runtime.consoleAPICalled');
  assert.is(said?.pageId, 0);
  assert.is(said?.response, undefined);
  assert.match(said?.request.rawBody ?? '', /from the page/);
  const [shot] = named('Page.captureScreenshot');
  assert.match(String(shot?.response?.result['truncated']), /bytes/);
  assert.ok((shot?.response?.rawBody.length ?? 0) < 3_000);
  for (const method of [
    'Network.requestWillBeSent',
    'Network.responseReceived',
    'Target.setAutoAttach',
  ]) {
    assert.ok(named(method).length > 0, method);
  }
  assert.ok(named('Input.dispatchKeyEvent').length > 0);
  for (const { request } of named('Input.dispatchKeyEvent')) {
    assert.not(/"[zZ]"|KeyZ/.test(JSON.stringify(request)), JSON.stringify(request));
  }
}

test('a session with logSession false has no log', async () => {
  const stack = await service.get();
  const json = { browserSettings: { logSession: false } };
  const { id, connectUrl } = await stack.call<Session>('/v1/sessions', { json });
  const browser = await chromium.connectOverCDP(connectUrl);
  await browser.contexts()[0]?.pages()[0]?.evaluate('1');
  assert.equal(await logsOf(stack, id), []);
  await browser.close();
  await until(async () => {
    const { status } = await stack.call<Session>(`/v1/sessions/${id}`);
    return status === 'COMPLETED';
  }, LOGGED_LIMIT_MS);
  assert.equal(await logsOf(stack, id), []);
});

test('the log of an invocation’s session is stored when the invocation has ended', async () => {
  const stack = await service.get();
  const { asks = '' } = await publish(stack, {
    'package.json': '{"name":"asks","version":"1.0.0","private":true,"type":"module"}',
    'index.ts': `import { defineFn } from 'tabern';
defineFn('asks', async (ctx) => {
  const socket = new WebSocket(ctx.session.connectUrl);
  await new Promise((resolve) => { socket.onopen = resolve; });
  const answer = new Promise((resolve) => { socket.onmessage = ({ data }) => resolve(data); });
  socket.send('{"id":1,"method":"Browser.getVersion"}');
  await answer;
  socket.close();
});
`,
  });
  const { id } = await invoke(stack, asks);
  const { status, sessionId } = await ended(stack, id);
  assert.is(status, 'COMPLETED');
  const [entry, ...more] = await logsOf(stack, sessionId);
  assert.equal(more, []);
  assert.is(entry?.method, 'Browser.getVersion');
  assert.is(entry?.pageId, 0);
  assert.equal(entry?.request.params, {});
  assert.match(String(entry?.response?.result['product']), /Chrome/);
});

test('an unreachable host is a net error, and the log has a warning with the reason', async () => {
  const stack = await service.get();
  const { id, connectUrl } = await stack.call<Session>('/v1/sessions', { json: {} });
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = await browser.newPage();
  for (const url of ['http://one.invalid/', 'https://two.invalid/', 'http://10.0.0.1/']) {
    const code = url.includes('invalid') ? 'NAME_NOT_RESOLVED' : 'ADDRESS_UNREACHABLE';
    for (const _ of [1, 2]) {
      assert.match(await page.goto(url).then(() => 'a page', String), `net::ERR_${code}`);
    }
  }
  await browser.close();
  const warnings = async (): Promise<unknown[]> => {
    const all = await logsOf(stack, id);
    const found = all.filter(({ method }) => method === 'Tabern.warning');
    return found.map(({ request }) => request.params['message']);
  };
  await until(async () => (await warnings()).length >= 3, LOGGED_LIMIT_MS);
  const [one, two, closed] = await warnings();
  assert.equal([one, two], ['no address for one.invalid', 'no address for two.invalid']);
  assert.match(String(closed), '10.0.0.1 is not reachable from here');
  assert.is((await warnings()).length, 3, 'each reason once');
});

test('the service of these tests leaves nothing', () => service.end());

test.run();
