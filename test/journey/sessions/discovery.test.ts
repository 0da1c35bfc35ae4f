/** Clients with an http address: their requests, and the sockets that the responses name. */
import { once } from 'node:events';
import CDP from 'chrome-remote-interface';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocket } from 'ws';
import { must } from '../../../proto/common/must.ts';
import { until } from '../../support/poll.ts';
import { startSite } from '../../support/servers/site.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';

const test = suite('journey/sessions/discovery');
const service = shareStack();
type Session = { id: string; connectUrl: string; signingKey: string };
type Target = { id: string; type: string; url: string; webSocketDebuggerUrl: string };

const create = (stack: Stack) => {
  return stack.call<Session>('/v1/sessions', { json: { keepAlive: true } });
};

test('Playwright and Puppeteer connect by the http address of a session', async () => {
  const stack = await service.get();
  for (const base of ['/connect', '']) {
    const { signingKey } = await create(stack);
    const address = `${stack.url}${base}?signingKey=${signingKey}`;
    const browser = await chromium.connectOverCDP(address);
    assert.is(browser.contexts().length, 1);
    await browser.close();
    const puppet = await puppeteer.connect({ browserURL: address });
    assert.is((await puppet.pages()).length, 1);
    await puppet.disconnect();
  }
});

test('a long URL of a page is cut in the list of targets', async () => {
  const stack = await service.get();
  const { connectUrl, signingKey } = await create(stack);
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'a page');
  await page.goto(`data:text/html,${'x'.repeat(100_000)}`);
  const list = await fetch(`${stack.url}/json/list?signingKey=${signingKey}`);
  const targets = (await list.json()) as Target[];
  assert.equal(Math.max(...targets.map(({ url }) => url.length)), 8_192);
  await browser.close();
});

test('the targets of a session are listed, opened, shown and closed, by either key', async () => {
  await using site = await startSite();
  const stack = await service.get();
  const { id, signingKey } = await create(stack);
  const ask = async (path: string, { method = 'GET', query = `signingKey=${signingKey}` } = {}) => {
    const headers = query.startsWith('session') ? { 'x-svc-api-key': stack.apiKey } : {};
    const and = path.includes('?') ? '&' : '?';
    return await fetch(`${stack.url}${path}${and}${query}`, { method, headers });
  };
  const keys = [undefined, `sessionId=${id}`, `apiKey=${stack.apiKey}&sessionId=${id}`];
  for (const query of keys) {
    for (const base of ['', '/connect']) {
      const opened = await ask(`${base}/json/new?${site.url}`, { method: 'PUT', query });
      const page = (await opened.json()) as Target;
      assert.match(page.webSocketDebuggerUrl, `/devtools/page/${page.id}?signingKey=`);
      const all = (await (await ask(`${base}/json/list`, { query })).json()) as Target[];
      assert.ok(all.some((one) => one.id === page.id && one.type === 'page'));
      const same = (await (await ask(`${base}/json`, { query })).json()) as Target[];
      assert.equal(same.map((one) => one.id).sort(), all.map((one) => one.id).sort());
      const shown = await ask(`${base}/json/activate/${page.id}`, { query });
      assert.is(await shown.text(), 'Target activated');
      const closed = await ask(`${base}/json/close/${page.id}`, { query });
      assert.is(await closed.text(), 'Target is closing');
      // Chrome closes the page after the response
      const again = () => ask(`${base}/json/activate/${page.id}`, { query });
      await until(async () => (await again()).status === 404);
    }
  }
  const protocol = (await (await ask('/json/protocol')).json()) as { domains: object[] };
  assert.ok(protocol.domains.length > 30);
  const texts = await Promise.all(
    [1, 2].map(async () => await (await ask('/json/protocol')).text()),
  );
  assert.equal(texts, Array(2).fill(JSON.stringify(protocol)));
  const { headers } = await ask('/json/protocol');
  assert.is(headers.get('content-type'), 'application/json; charset=utf-8');
  assert.is((await ask('/json/new?file:///etc/passwd', { method: 'PUT' })).status, 400);
  assert.is((await ask('/json/new')).status, 405);
  for (const path of ['/json', '/json/protocol', '/connect/json/version']) {
    assert.is((await ask(path, { query: 'signingKey=x' })).status, 401, path);
  }
});

test('chrome-remote-interface drives a page in its default mode', async () => {
  await using site = await startSite();
  const stack = await service.get();
  const { signingKey } = await create(stack);
  const { hostname: host, port } = new URL(stack.url);
  const alterPath = (path: string): string => {
    return `${path}${path.includes('?') ? '&' : '?'}signingKey=${signingKey}`;
  };
  const options = { host, port: Number(port), alterPath } as CDP.Options;
  const client = await CDP(options);
  await client.Page.enable();
  const loaded = client.Page.loadEventFired();
  await client.Page.navigate({ url: site.url });
  await loaded;
  const { result } = await client.Runtime.evaluate({ expression: 'location.href' });
  assert.match(result.value, site.url);
  await client.close();
});

test('a page socket carries the messages of that page, and ends with it', async () => {
  await using site = await startSite();
  const stack = await service.get();
  const { signingKey } = await create(stack);
  const query = `signingKey=${signingKey}`;
  const make = async (): Promise<Target> => {
    const answer = await fetch(`${stack.url}/json/new?${query}`, { method: 'PUT' });
    return (await answer.json()) as Target;
  };
  const [one, other] = await Promise.all([make(), make()]);
  const socket = new WebSocket(one.webSocketDebuggerUrl);
  const said: Record<string, unknown>[] = [];
  socket.on('message', (text) => said.push(JSON.parse(String(text))));
  await once(socket, 'open');
  socket.send('{"id":1,"method":"Page.enable"}');
  // a navigation that overtakes it changes the process, whose page then reports no load
  await until(() => said.some(({ id }) => id === 1));
  socket.send(JSON.stringify({ id: 2, method: 'Page.navigate', params: { url: site.url } }));
  await until(() => said.some(({ method }) => method === 'Page.loadEventFired'));
  const before = said.length;
  const second = new WebSocket(other.webSocketDebuggerUrl);
  await once(second, 'open');
  second.send(JSON.stringify({ id: 1, method: 'Page.navigate', params: { url: site.url } }));
  await once(second, 'message');
  socket.send('{"id":3,"method":"Runtime.evaluate","params":{"expression":"6*7"}}');
  const answer = await until(() => said.find(({ id }) => id === 3));
  assert.equal(answer['result'], { result: { type: 'number', value: 42, description: '42' } });
  const foreign = said.slice(before).filter(({ method }) => String(method).includes('Started'));
  assert.equal(foreign, [], 'nothing of the other page');
  assert.ok(said.every((message) => !('sessionId' in message)));
  const closed = once(socket, 'close');
  await fetch(`${stack.url}/json/close/${one.id}?${query}`);
  assert.is((await closed)[0], 1000);
  second.close();
  const gone = new WebSocket(must(one.webSocketDebuggerUrl, 'an address')).on('error', () => {});
  const [, response] = await once(gone, 'unexpected-response');
  assert.is(response.statusCode, 404);
});

test('the service of these tests leaves nothing', () => service.end());

test.run();
