/** Browser contexts with a proxy of their own, as Playwright and Puppeteer create them. */
import { createServer } from 'node:https';
import { type Browser, chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { routeOf } from '../../../runner/browser/cdp/context-route.ts';
import { selfSigned } from '../../support/servers/certificates.ts';
import { startHttpProxy, startSocksProxy } from '../../support/servers/proxies.ts';
import { openRaw } from '../sessions/relay/raw.ts';
import { type Lab, listen, openLab, until } from './lab.ts';

const proxies = suite('runner/browser/context-proxies');

const CREDENTIALS = { username: 'user', password: 'p@ss' };
const LOOPBACK = ['127.0.0.0/8', '::1/128'];

const portOf = (url: string): number => Number(new URL(url).port);

/** The page's text, or the error of going there. */
async function textAt(browser: Browser, proxy: object, url: string): Promise<string> {
  const context = await browser.newContext({
    proxy: proxy as { server: string },
    ignoreHTTPSErrors: true,
  });
  const page = await context.newPage();
  const answer = await page.goto(url, { timeout: 20_000 }).catch(String);
  const text = typeof answer === 'string' ? answer : `${answer?.status()} ${await page.content()}`;
  await context.close();
  return text;
}

/** In a context without a proxy of any kind; Playwright writes `direct://` as `http://direct`. */
async function textStraight(lab: Lab): Promise<string> {
  const browser = await puppeteer.connect({ browserWSEndpoint: lab.connectUrl });
  const context = await browser.createBrowserContext({ proxyServer: 'direct://' });
  const page = await context.newPage();
  const failure = await page.goto(lab.siteUrl).then(() => '', String);
  const text = failure || (await page.content());
  await browser.disconnect();
  return text;
}

for (const sandbox of ['bwrap', 'landlock'] as const) {
  proxies(`${sandbox}: browser contexts use their own proxies, the session its route`, async () => {
    await using lab = await openLab({ allow: LOOPBACK, sandbox });
    const secure = createServer(await selfSigned(), (_, to) => to.end('the secure site'));
    const securePort = await listen(secure);
    await using open = await startHttpProxy(portOf(lab.siteUrl));
    await using locked = await startHttpProxy(securePort, CREDENTIALS);
    const browser = await chromium.connectOverCDP(lab.connectUrl);
    const shop = 'http://shop.test/';
    assert.match(await textAt(browser, { server: `http://${open.address}` }, shop), /through the/);
    assert.equal(open.asked, [`GET ${shop}`]);
    const own = { server: `http://${locked.address}`, ...CREDENTIALS };
    assert.match(await textAt(browser, own, shop), /through the proxy/);
    assert.match(await textAt(browser, own, 'https://shop.test/'), /the secure site/);
    assert.ok(locked.asked.includes('CONNECT shop.test:443'));
    const asked = locked.asked.length;
    await textAt(browser, { ...own, password: 'wrong' }, 'https://shop.test/');
    assert.is(locked.asked.length, asked, 'other credentials');
    const passed = open.asked.length;
    const bypassed = { server: `http://${open.address}`, bypass: '.other.test, 127.0.0.1' };
    assert.match(await textAt(browser, bypassed, lab.siteUrl), /the site/);
    const page = await browser.contexts()[0]?.newPage();
    await page?.goto(lab.siteUrl);
    assert.is(await page?.title(), 'the site');
    assert.is(open.asked.length, passed, 'none of these was for the proxy');
    await browser.close();
    secure.close();
    secure.closeAllConnections();
  });

  proxies(`${sandbox}: Puppeteer's contexts use a SOCKS proxy with a password`, async () => {
    await using lab = await openLab({ allow: LOOPBACK, sandbox });
    await using socks = await startSocksProxy(portOf(lab.siteUrl), CREDENTIALS);
    const browser = await puppeteer.connect({ browserWSEndpoint: lab.connectUrl });
    const proxyServer = `socks5://user:p%40ss@${socks.address}`;
    const context = await browser.createBrowserContext({ proxyServer });
    const page = await context.newPage();
    await page.goto('http://shop.test/');
    assert.is(await page.title(), 'the site');
    assert.match(await textStraight(lab), /the site/);
    assert.ok(
      socks.asked.every((one) => one === 'SOCKS shop.test:80'),
      socks.asked.join(),
    );
    await browser.disconnect();
  });

  proxies(
    `${sandbox}: no proxy of a context reaches an address that the egress closes`,
    async () => {
      await using lab = await openLab({ allow: [], sandbox });
      await using proxy = await startHttpProxy(portOf(lab.siteUrl));
      const [, port] = proxy.address.split(':');
      const browser = await chromium.connectOverCDP(lab.connectUrl);
      const hosts = ['127.0.0.1', 'localhost', '127.0.0.2', '[::1]', '0x7f.1', '169.254.169.254'];
      for (const host of hosts) {
        for (const scheme of ['http', 'https', 'socks5']) {
          await textAt(browser, { server: `${scheme}://${host}:${port}` }, 'http://shop.test/');
        }
      }
      for (const bypass of ['*', '127.0.0.1', '<local>', '<-loopback>', '.0.0.1']) {
        const dodging = { server: 'http://192.0.2.1:3128', bypass };
        assert.not((await textAt(browser, dodging, lab.siteUrl)).includes('the site'), bypass);
      }
      assert.not((await textStraight(lab)).includes('the site'));
      assert.equal([proxy.asked, lab.asked], [[], []]);
      await browser.close();
    },
  );
}

proxies('a closed context releases its proxy, and the number of proxies is limited', async () => {
  await using lab = await openLab({ allow: [], sandbox: 'landlock' });
  const raw = await openRaw(lab.connectUrl);
  const create = async (): Promise<string> => {
    const params = { proxyServer: 'http://192.0.2.1:3128' };
    return String((await raw.call('Target.createBrowserContext', params))['browserContextId']);
  };
  for (let at = 0; at < 100; at += 1) {
    await raw.call('Target.disposeBrowserContext', { browserContextId: await create() });
  }
  await create();
  assert.ok(listeners() < 40, `${listeners()} addresses are taken`);
  raw.socket.close();
});

proxies('a client that disconnects before its context is created leaves no proxy', async () => {
  await using lab = await openLab({ allow: [], sandbox: 'landlock' });
  const { pipe } = lab.chrome;
  const before = listeners();
  for (let round = 0; round < 5; round += 1) {
    const raw = await openRaw(lab.connectUrl);
    pipe.pause(raw); // Chrome's answer is not read
    const params = { proxyServer: 'http://192.0.2.1:3128' };
    raw.socket.send(JSON.stringify({ id: 9, method: 'Target.createBrowserContext', params }));
    await until(() => listeners() > before, 'the address of the proxy');
    raw.socket.close();
    await until(() => lab.relay.clients === 0, 'the client left');
    pipe.resume(raw);
    await until(() => listeners() === before, `round ${round}: the address is free again`);
  }
  const { browserContextIds } = await pipe.call('Target.getBrowserContexts');
  assert.is((browserContextIds as string[]).length, 5, 'Chrome had been asked');
});

/** Sockets of this process that listen. */
function listeners(): number {
  const all = process.getActiveResourcesInfo();
  return all.filter((name) => name === 'TCPServerWrap').length;
}

proxies('an invalid proxy is refused without its password in the message', async () => {
  await using lab = await openLab({ allow: [] });
  const raw = await openRaw(lab.connectUrl);
  const wrong = [
    'ftp://u:hidden@p.test',
    'a:1,b:2',
    'http=u:hidden@a:1;https=b:2',
    'quic://p:1',
    'pac+http://p:1',
  ];
  for (const proxyServer of wrong) {
    const said = String(
      await raw.call('Target.createBrowserContext', { proxyServer }).catch(String),
    );
    assert.match(said, /Target\.createBrowserContext is not available: proxyServer/, proxyServer);
    assert.not(said.includes('hidden'));
  }
  raw.socket.close();
  await until(() => lab.relay.clients === 0, 'the client left');
});

proxies('bypass rules name hosts as in Chrome', async () => {
  const isProxied = async (bypass: string, host: string): Promise<boolean | undefined> =>
    await routeOf('http://p.test', bypass)?.pattern?.find(host);
  for (const [bypass, host, isTaken] of [
    ...[['', 'a.test', true] as const, ['a.test', 'a.test', false] as const],
    ...[['a.test', 'b.a.test', true] as const, ['.a.test', 'b.a.test', false] as const],
    ...[['*.A.test; x', 'b.a.test', false] as const, ['.a.test', 'a.test', true] as const],
    ...[['*', 'a.test', false] as const, ['<local>', 'host', false] as const],
    ...[['<local>', 'a.test', true] as const, ['<-loopback>', 'localhost', true] as const],
    ...[['', 'localhost', false] as const, ['', 'a.localhost', false] as const],
    ...[['', '127.1.2.3', false] as const, ['', '::1', false] as const],
    ...[['x', '169.254.1.1', false] as const, ['<-loopback>,x', '127.0.0.1', true] as const],
    ...[['[::1]', '::1', false] as const, ['[2001:db8::1]', '2001:db8::1', false] as const],
    ...[['10.0.0.0/8', '10.1.2.3', false] as const, ['10.0.0.0/8', '11.0.0.1', true] as const],
    ...[['2001:db8::/32', '2001:db8::2', false] as const, ['x 1.2.3.4', '1.2.3.4', false] as const],
    ...[['10.0.0.0/8', 'ten.test', true] as const, ['1.2.3.4', '1.2.3.5', true] as const],
    ...[['', 'localhost.test', true] as const, ['', '128.0.0.1', true] as const],
  ]) {
    assert.is(await isProxied(bypass, host), isTaken, `${bypass}: ${host}`);
  }
  for (const bypass of [
    ...['a*b', 'http://a', 'a.test:80', '[::1', '10.0.0.0/99', 'a/8', 'x'.repeat(9_000)],
  ]) {
    assert.throws(() => routeOf('http://p.test', bypass), /proxyBypassList/, bypass);
  }
});

proxies.run();
