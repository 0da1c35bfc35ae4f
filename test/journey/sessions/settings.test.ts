/**
 * Settings of a session's browser, over REST and as a page sees them; warnings of unsupported
 * settings.
 */

import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { suite } from 'uvu';
import { equal, is, match, not, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { until } from '../../support/poll.ts';
import { selfSigned } from '../../support/servers/certificates.ts';
import { startHttpProxy } from '../../support/servers/proxies.ts';
import { startSite } from '../../support/servers/site.ts';
import { boot, type Stack, shareStack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/sessions/settings');
const LOCAL = { TABERN_BROWSER_ALLOW_CIDRS: '127.0.0.1/32' };
const service = shareStack({ env: LOCAL });

type Session = { id: string; connectUrl: string; proxyBytes: number; status: string };
type Driven = { session: Session; page: Page; browser: Browser };

async function drive(stack: Stack, json: object): Promise<Driven> {
  const session = await stack.call<Session>('/v1/sessions', { json });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'the default page');
  return { session, page, browser };
}

/** The warnings of the session, when there is one. */
async function warningsOf(stack: Stack, { id }: Session): Promise<string[]> {
  type Entry = { method: string; request: { params: { message?: string } } };
  return await until(async () => {
    const logs = await stack.call<Entry[]>(`/v1/sessions/${id}/logs`);
    const found = logs.filter(({ method }) => method === 'Tabern.warning');
    return found.length > 0 && found.map(({ request }) => String(request.params.message));
  });
}

async function ended(stack: Stack, { id }: Session): Promise<Session> {
  await stack.call(`/v1/sessions/${id}`, { json: { status: 'REQUEST_RELEASE' } });
  return await until(async () => {
    const session = await stack.call<Session>(`/v1/sessions/${id}`);
    return session.status === 'COMPLETED' && session;
  });
}

journey('viewport, engine and allowed domains are as requested', async () => {
  await using site = await startSite();
  const stack = await service.get();
  for (const engine of ['chromium', 'headless-shell']) {
    const viewport = { width: 1000, height: 600 };
    const allowedDomains = ['127.0.0.1'];
    const { session, page } = await drive(stack, {
      browserSettings: { engine, viewport, allowedDomains },
    });
    equal(await page.evaluate('[innerWidth, innerHeight]'), [1000, 600], engine);
    is(await page.evaluate("'chrome' in window"), engine === 'chromium');
    await page.goto(site.url);
    is(await page.title(), 'The inn');
    const outside = site.url.replace('127.0.0.1', 'localhost');
    match(String(await page.goto(outside).catch(String)), /BLOCKED_BY_CLIENT/);
    await ended(stack, session);
  }
});

journey('an invalid certificate is accepted only with ignoreCertificateErrors', async () => {
  const server = createServer(await selfSigned(), (_, to) => void to.end('<title>signed</title>'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  try {
    const stack = await service.get();
    const strict = await drive(stack, {});
    match(String(await strict.page.goto(url).catch(String)), /ERR_CERT/);
    const lax = await drive(stack, { browserSettings: { ignoreCertificateErrors: true } });
    await lax.page.goto(url);
    is(await lax.page.title(), 'signed');
    await Promise.all([strict, lax].map(({ session }) => ended(stack, session)));
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

journey('an external proxy has the hosts of its pattern; a managed one is metered', async () => {
  await using site = await startSite();
  const sitePort = Number(new URL(site.url).port);
  await using mine = await startHttpProxy(sitePort, { username: 'me', password: 'secret' });
  await using pool = await startHttpProxy(sitePort);
  await using stack = await boot({ env: { ...LOCAL, TABERN_PROXY: `http://${pool.address}` } });
  const server = `http://${mine.address}`;
  const { session, page } = await drive(stack, {
    proxies: [
      { type: 'external', server, username: 'me', password: 'secret', domainPattern: '^far\\.' },
      { type: 'none', domainPattern: '^127\\.' },
      { type: 'browserbase' },
    ],
  });
  await page.goto('http://far.test/a');
  await page.goto(site.url);
  await page.goto('http://managed.test/b');
  match(await page.content(), /through the proxy/);
  equal(
    mine.asked.filter((line) => line.endsWith('/a')),
    ['GET http://far.test/a'],
  );
  ok(pool.asked.includes('GET http://managed.test/b'));
  ok(site.visits.includes('/'));
  ok((await ended(stack, session)).proxyBytes > 0);
  not.match(stack.logs(), /secret/);
});

journey('a filter list blocks its hosts, and other hosts load', async () => {
  await using site = await startSite();
  await using dir = tempDirectory();
  const list = join(dir.path, 'list.txt');
  writeFileSync(list, '||localhost^');
  await using stack = await boot({ env: { ...LOCAL, TABERN_AD_LISTS: list } });
  const { session, page } = await drive(stack, { browserSettings: { blockAds: true } });
  await page.goto(site.url);
  const advert = site.url.replace('127.0.0.1', 'localhost');
  const fetched = await page.evaluate(
    (url) =>
      fetch(`${url}/rooms`, { mode: 'no-cors' }).then(
        () => 'loaded',
        () => 'blocked',
      ),
    advert,
  );
  // over plain http the refusal is a response of the proxy, not of the site
  ok(!site.visits.includes('/rooms'), fetched);
  await ended(stack, session);
});

const TLS = 'a tunnel for TLS';

/** A page, its service worker, and every host that was asked for anything, in order. */
async function startHosts() {
  const asked: string[] = [];
  const server = createHttpServer(({ headers, url }, response) => {
    asked.push(String(headers.host));
    const type = url === '/worker.js' ? 'text/javascript' : 'text/html';
    const worker =
      'onmessage = ({ data, source }) => fetch(data).catch(String).then(String)' +
      '.then((text) => source.postMessage(text))';
    response.writeHead(200, { 'content-type': type, 'access-control-allow-origin': '*' });
    response.end(type === 'text/html' ? '<title>here</title>' : worker);
  });
  server.on('upgrade', ({ headers }, socket) => {
    asked.push(String(headers.host));
    socket.destroy();
  });
  server.on('clientError', (_, socket) => {
    asked.push(TLS); // the start of a handshake is no request
    socket.destroy();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    asked,
    inside: `127.0.0.1:${port}`,
    outside: `localhost:${port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** In the page: asks for a host in every way that a page has; an outcome each. */
const ASK_EVERYWHERE = `async (host) => {
  const settled = (promise) => Promise.race([promise]).then(() => 'reached', () => 'failed');
  const socket = (url) => new Promise((resolve, reject) => {
    const opened = new WebSocket(url);
    opened.onopen = resolve;
    opened.onerror = reject;
  });
  const image = new Image();
  const frame = document.createElement('iframe');
  frame.src = 'http://' + host + '/frame';
  const framed = new Promise((resolve) => { frame.onload = resolve; });
  document.body.append(frame);
  image.src = 'http://' + host + '/image';
  const source = 'onmessage = ({ data }) => fetch(data)' +
    '.then(() => postMessage(true), () => postMessage(false))';
  const worker = new Worker(URL.createObjectURL(new Blob([source])));
  const worked = new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => (data ? resolve() : reject());
  });
  worker.postMessage('http://' + host + '/worker');
  const { active } = await navigator.serviceWorker.register('/worker.js')
    .then(() => navigator.serviceWorker.ready);
  const served = new Promise((resolve, reject) => {
    navigator.serviceWorker.onmessage = ({ data }) => (/Error/.test(data) ? reject() : resolve());
    navigator.serviceWorker.startMessages();
  });
  active.postMessage('http://' + host + '/service');
  await Promise.allSettled([framed, image.decode()]);
  return await Promise.all([
    settled(fetch('http://' + host + '/fetch')),
    settled(fetch('https://' + host + '/tunnel')),
    settled(socket('ws://' + host + '/socket')),
    settled(socket('wss://' + host + '/socket')),
    settled(worked),
    settled(served),
  ]);
}`;

journey('network rules judge every request where connections leave', async () => {
  await using hosts = await startHosts();
  const { inside, outside, asked } = hosts;
  const stack = await service.get();
  const rules = [{ allow: ['127.0.0.1'] }, { deny: ['localhost'] }, { allow: ['*'], deny: ['*'] }];
  for (const [index, network] of rules.entries()) {
    const engine = index === 0 ? 'chromium' : 'headless-shell';
    const { session, page } = await drive(stack, { browserSettings: { engine, network } });
    const isAnythingOpen = index < 2;
    const went = await page.goto(`http://${inside}/`).then(() => 'reached', String);
    if (isAnythingOpen) {
      is(went, 'reached');
      const outcomes = (await page.evaluate(`(${ASK_EVERYWHERE})('${outside}')`)) as string[];
      equal(outcomes, Array(6).fill('failed'), JSON.stringify(network));
      ok(!asked.includes(TLS), 'no tunnel to the refused host');
      const open = (await page.evaluate(`(${ASK_EVERYWHERE})('${inside}')`)) as string[];
      equal([open[0], open[4], open[5]], Array(3).fill('reached'));
      ok(asked.includes(TLS));
      asked.splice(0, asked.length, ...asked.filter((host) => host !== TLS));
    } else {
      match(went, /ERR_BLOCKED_BY_CLIENT: 127\.0\.0\.1 is not reachable from here: .*network/);
    }
    const refused = isAnythingOpen ? 'localhost' : '127.0.0.1';
    match(String(await page.goto(`http://${outside}/`).catch(String)), /ERR_BLOCKED_BY_CLIENT/);
    const warnings = await warningsOf(stack, session);
    const about = warnings.filter((text) => text.startsWith(`${refused} `));
    equal(about, [`${refused} is not reachable from here: browserSettings.network refuses it`]);
    await ended(stack, session);
  }
  ok(!asked.includes(outside), 'nothing reached the refused host');
});

/** An empty page. */
const PDF = `%PDF-1.4
1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj
2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj
3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>> endobj
trailer <</Root 1 0 R>>
%%EOF`;

async function startDocument() {
  const server = createHttpServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/pdf' }).end(PDF);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/paper.pdf`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

journey('a PDF is shown or downloaded, as enablePdfViewer says', async () => {
  await using document = await startDocument();
  const stack = await service.get();
  const rows: [settings: object, isShown: boolean][] = [
    [{}, true],
    [{ enablePdfViewer: true }, true],
    [{ enablePdfViewer: false }, false],
    [{ engine: 'headless-shell' }, false],
  ];
  for (const [browserSettings, isShown] of rows) {
    const { session, page } = await drive(stack, { browserSettings });
    const went = await page.goto(document.url).then(() => 'shown', String);
    if (isShown) {
      is(went, 'shown');
      is(await page.evaluate('document.contentType'), 'application/pdf');
    } else {
      match(went, /Download is starting|ERR_ABORTED/);
    }
    type Listed = { downloads: { filename: string; mimeType: string; size: number }[] };
    const listed = async () =>
      (await stack.call<Listed>(`/v1/downloads?sessionId=${session.id}`)).downloads;
    // the end of its session would end a download that is not complete
    if (!isShown) await until(async () => (await listed()).length > 0);
    await ended(stack, session);
    const found = (await listed()).map(({ filename, mimeType, size }) => [
      filename,
      mimeType,
      size,
    ]);
    const expected = isShown ? [] : [['paper.pdf', 'application/pdf', PDF.length]];
    equal(found, expected, JSON.stringify(browserSettings));
  }
});

const SELECT = `<select style="width: 200px"><option>one<option>two<option>three</select>`;

journey('enableNativeSelectPolyfill draws the list of a <select> in its page', async () => {
  await using site = await startSite();
  const stack = await service.get();
  for (const isDrawn of [true, false]) {
    const settings = { browserSettings: { enableNativeSelectPolyfill: isDrawn } };
    const { session, page: first } = await drive(stack, settings);
    for (const page of [first, await first.context().newPage()]) {
      await page.goto(site.url);
      await page.evaluate(`document.body.innerHTML = ${JSON.stringify(SELECT)}`);
      await page.click('select');
      const isOpen = `document.querySelector('select').matches(':open')`;
      if (isDrawn) await page.waitForFunction(isOpen);
      const second = `document.querySelectorAll('option')[1].getBoundingClientRect().toJSON()`;
      const { x, y, height } = (await page.evaluate(second)) as Record<
        'x' | 'y' | 'height',
        number
      >;
      is(height > 0, isDrawn);
      if (!isDrawn) continue;
      await page.mouse.click(x + 5, y + height / 2);
      is(await page.evaluate(`document.querySelector('select').value`), 'two');
    }
    await ended(stack, session);
  }
});

journey('an unsupported setting is a warning in the log', async () => {
  await using stack = await boot();
  const { session } = await drive(stack, {
    proxies: true,
    browserSettings: { verified: true, solveCaptchas: true, os: 'mac' },
  });
  const warnings = (await warningsOf(stack, session)).join('\n');
  for (const what of [/TABERN_PROXY/, /^verified/m, /^solveCaptchas/m, /^os: .*mac/m]) {
    match(warnings, what);
  }
  await ended(stack, session);
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();
