/**
 * Sessions over the public interface: published clients drive a real Chrome, and every end has its
 * close code and status.
 */
import { once } from 'node:events';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { WebSocket } from 'ws';
import { must } from '../../../proto/common/must.ts';
import { until } from '../../support/poll.ts';
import { startSite } from '../../support/servers/site.ts';
import { SPARES } from '../../support/service/serve.ts';
import { boot, type Stack, shareStack } from '../../support/service/stack.ts';

const journey = suite('journey/sessions/session');
const GRACE_MS = 200;
const env = { TABERN_SESSION_GRACE_MS: String(GRACE_MS) };
/** The sessions of this file take browsers that were started in advance. */
const service = shareStack({ env: { ...env, ...SPARES } });

type Told = { webSocketDebuggerUrl?: unknown; Browser?: unknown };
type Session = { id: string; status: string; connectUrl: string; signingKey: string };

const create = (stack: Stack, json: object = {}) => stack.call<Session>('/v1/sessions', { json });
const read = (stack: Stack, { id }: Session) => stack.call<Session>(`/v1/sessions/${id}`);

/** Waits for the end of the session; returns its status. */
async function endOf(stack: Stack, session: Session): Promise<string> {
  const isOver = async () => {
    const { status } = await read(stack, session);
    return status !== 'PENDING' && status !== 'RUNNING' && status;
  };
  return await until(isOver);
}

async function open(url: string): Promise<WebSocket> {
  const client = new WebSocket(url);
  await once(client, 'open');
  return client;
}

async function ask(client: WebSocket, method: string): Promise<Record<string, unknown>> {
  client.send(JSON.stringify({ id: 1, method }));
  const [bytes] = await once(client, 'message');
  return JSON.parse(String(bytes)).result;
}

/** The status and the body of a refused upgrade. */
async function refusal(url: string, headers: Record<string, string> = {}) {
  const client = new WebSocket(url, { headers }).on('error', () => {});
  const [, response] = await once(client, 'unexpected-response');
  let text = '';
  for await (const part of response) text += part;
  return { status: response.statusCode as number, body: JSON.parse(text) };
}

journey('Playwright drives a session, and its disconnection ends the session', async () => {
  await using site = await startSite();
  const stack = await service.get();
  const session = await create(stack);
  is(session.status, 'RUNNING');
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'the default page');
  await page.goto(site.url);
  ok(await page.title());
  const popup = await must(browser.contexts()[0], 'the default context').newPage();
  is(await popup.evaluate('1 + 1'), 2);
  await browser.close();
  is(await endOf(stack, session), 'COMPLETED');
  const gone = await chromium.connectOverCDP(session.connectUrl).catch(String);
  match(String(gone), /410/);
  match(String(gone), /The session has ended/);
  await using other = await boot({ env });
  is(
    (await refusal(session.connectUrl.replace(stack.url.slice(7), other.url.slice(7)))).status,
    401,
  );
});

journey('Browser.close disconnects Puppeteer and leaves another client connected', async () => {
  const stack = await service.get();
  const session = await create(stack, { keepAlive: true });
  const beside = await open(session.connectUrl);
  const browser = await puppeteer.connect({ browserWSEndpoint: session.connectUrl });
  const page = await browser.newPage();
  is(await page.evaluate('document.title = "kept"'), 'kept');
  await browser.close();
  ok((await ask(beside, 'Browser.getVersion'))['product']);
  beside.close();
  await once(beside, 'close');

  const again = await puppeteer.connect({
    browserWSEndpoint: (await read(stack, session)).connectUrl,
  });
  const titles = await Promise.all((await again.pages()).map((one) => one.title()));
  ok(titles.includes('kept'), String(titles));
  is((await read(stack, session)).status, 'RUNNING');

  const left = new Promise((resolve) => again.once('disconnected', resolve));
  const watching = await open(session.connectUrl);
  const closing = once(watching, 'close');
  await stack.call(`/v1/sessions/${session.id}`, { json: { status: 'REQUEST_RELEASE' } });
  const [code, reason] = await closing;
  is(`${code} ${reason}`, '1000 the session was released');
  await left;
  is(await endOf(stack, session), 'COMPLETED');
  await stack.fetch(`/v1/sessions/${session.id}`, { method: 'DELETE' }); // changes nothing
  is((await read(stack, session)).status, 'COMPLETED');
});

journey('every form of the URL opens a session; a wrong one is refused', async () => {
  const stack = await service.get();
  const session = await create(stack, { keepAlive: true });
  const ws = stack.url.replace('http', 'ws');
  const { signingKey, id } = session;
  const good = [
    `${ws}/connect?signingKey=${signingKey}`,
    `${ws}?signingKey=${signingKey}`,
    `${ws}/?apiKey=${stack.apiKey}&sessionId=${id}`,
    `${ws}/connect?enableProxy=true&signingKey=${signingKey}`,
  ];
  for (const url of good) {
    const client = await open(url);
    ok((await ask(client, 'Browser.getVersion'))['product'], url);
    client.close();
  }
  const keyed = [{ 'X-SVC-API-Key': stack.apiKey }, { authorization: `Bearer ${stack.apiKey}` }];
  for (const header of keyed) {
    const headers = { ...header, origin: 'https://elsewhere.example' };
    const withHeader = new WebSocket(`${ws}/?sessionId=${id}`, { headers });
    await once(withHeader, 'open');
    withHeader.close();
  }

  const missing = crypto.randomUUID();
  const wrong: [string, number][] = [
    ['/connect', 401],
    ['/connect?signingKey=', 401],
    [`/connect?signingKey=${signingKey.slice(0, -1)}x`, 401],
    [`/connect?signingKey=${signingKey}&signingKey=${signingKey}`, 400],
    [`/?apiKey=wrong&sessionId=${id}`, 401],
    [`/?apiKey=${stack.apiKey}&sessionId=${missing}`, 404],
    [`/?apiKey=${stack.apiKey}&sessionId=x`, 400],
    ['/view?token=x', 401],
    ['/elsewhere', 404],
    [`/connect?signingKey=${'x'.repeat(9_000)}`, 414],
  ];
  for (const [path, status] of wrong) {
    const refused = await refusal(ws + path);
    is(refused.status, status, path);
    equal(Object.keys(refused.body), ['statusCode', 'error', 'message'], path);
    is(refused.body.statusCode, status);
  }
  ok(!stack.logs().includes(signingKey), 'no key in the log');
  ok(!stack.logs().includes(stack.apiKey), 'no API key in the log');
});

journey('a client connects by an http address; an API key alone starts a session', async () => {
  const stack = await service.get();
  const session = await create(stack, { keepAlive: true });
  for (const query of [
    `signingKey=${session.signingKey}`,
    `apiKey=${stack.apiKey}&sessionId=${session.id}`,
  ]) {
    for (const path of ['/json/version', '/json/version/']) {
      const answer = await fetch(`${stack.url}${path}?${query}`);
      const { webSocketDebuggerUrl, Browser: product } = (await answer.json()) as Told;
      is(webSocketDebuggerUrl, session.connectUrl);
      match(String(product), /Chrome\/\d+\.\d+/);
    }
  }
  is((await fetch(`${stack.url}/json/version?signingKey=x`)).status, 401);
  is((await fetch(`${stack.url}/json/version?apiKey=${stack.apiKey}`)).status, 400);

  const client = await open(`${stack.url.replace('http', 'ws')}/?apiKey=${stack.apiKey}`);
  ok((await ask(client, 'Browser.getVersion'))['product']);
  const running = await stack.call<Session[]>('/v1/sessions?status=RUNNING');
  const made = must(
    running.find(({ id }) => id !== session.id),
    'a new session',
  );
  client.close();
  is(await endOf(stack, made), 'COMPLETED');
});

journey('a killed runner ends its sessions and leaves no process', async () => {
  await using stack = await boot({ env });
  const session = await create(stack, { keepAlive: true });
  const client = await open(session.connectUrl);
  const closed = once(client, 'close');
  process.kill(await stack.runnerPid(session.id), 'SIGKILL');
  const [code, reason] = await closed;
  is(`${code} ${reason}`, '1011 the runner was lost');
  is(await endOf(stack, session), 'ERROR');
  is((await refusal(session.connectUrl)).status, 410);
  await stack.pidsOf('runner');
  const next = await create(stack); // of one runner, by that which replaced it
  is(next.status, 'RUNNING');
});

journey('a stopping service closes every client with a reason and ends the session', async () => {
  await using stack = await boot({ env });
  const session = await create(stack, { keepAlive: true });
  const client = await open(session.connectUrl);
  const closed = once(client, 'close');
  await stack.kill('SIGTERM');
  const [code, reason] = await closed;
  is(code, 1001);
  match(String(reason), /the (gateway is ending|service is shutting down)/);
  await stack.restart();
  is((await read(stack, session)).status, 'ERROR');
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();
