/** Unreachable hosts, offline, proxies. */
import { freePort } from '../../../support/port.ts';
import { startHttpProxy } from '../../../support/servers/proxies.ts';
import { reported } from '../thing.ts';
import type { Place, PuppeteerThing } from './place.ts';

const CREDENTIALS = { username: 'ada', password: 'se:cret' };

export const CONNECTIONS: readonly PuppeteerThing[] = [
  {
    name: 'unreachable hosts and ports, invalid URLs',
    async run({ page, site }) {
      const port = await freePort();
      const errors: string[] = [];
      for (const url of [
        ...['http://no-such-host.invalid/', 'https://no-such-host.invalid/', 'http://[100::1]/'],
        ...[`http://127.0.0.1:${port}/`, `https://127.0.0.1:${port}/`, 'http://127.0.0.1:1/'],
        ...[`${site.url}/reset`, 'http://', 'foo'],
      ]) {
        const error = await page.goto(url).then(() => 'a page', reported);
        errors.push(error.replaceAll(`:${port}`, ''));
      }
      return errors;
    },
  },
  {
    name: 'offline, online again, and a slow connection',
    async run({ page, site }) {
      await page.goto(site.url);
      const look = `fetch('/data.json')
        .then((r) => r.status, String).then((s) => [navigator.onLine, s])`;
      await page.setOfflineMode(true);
      const offline = await page.evaluate(look);
      const error = await page.goto(`${site.url}/two`).then(() => 'a page', reported);
      await page.setOfflineMode(false);
      await page.goto(site.url);
      const conditions = { download: 1e6, upload: 1e6, latency: 300 };
      await page.emulateNetworkConditions(conditions);
      const slow = `fetch('/data.json', { cache: 'no-store' }).then((r) => r.text())
        .then(() => performance.getEntriesByType('resource').at(-1).duration >= 300)`;
      return [offline, error, await page.evaluate(look), await page.evaluate(slow)];
    },
  },
  {
    name: 'proxies of contexts: open, with credentials, bypassed, direct',
    async run({ browser, site }) {
      const { port } = new URL(site.url);
      await using open = await startHttpProxy(Number(port));
      await using locked = await startHttpProxy(Number(port), CREDENTIALS);
      const shop = 'http://shop.test/two';
      const address = `http://${open.address}`;
      const known = `http://${locked.address}`;
      return [
        await textAt(browser, { proxyServer: address }, shop),
        await textAt(browser, { proxyServer: address, proxyBypassList: ['127.0.0.1'] }, site.url),
        await textAt(browser, { proxyServer: known }, shop, CREDENTIALS),
        await textAt(browser, { proxyServer: known }, shop, { username: 'ada', password: 'no' }),
        await textAt(browser, { proxyServer: 'direct://' }, `${site.url}/two`),
        [open, locked].map(({ asked }) => asked.filter((one) => one.endsWith('/two'))),
      ];
    },
  },
  {
    name: 'an unreachable proxy',
    async run({ browser, site }) {
      const proxyServer = `http://127.0.0.1:${await freePort()}`;
      const texts: unknown[] = [];
      // loopback is not sent to a proxy, unless a rule requires it
      for (const url of ['http://shop.test/', 'https://shop.test/', site.url, site.other]) {
        texts.push(await textAt(browser, { proxyServer }, url));
      }
      const proxyBypassList = ['<-loopback>'];
      return [texts, await textAt(browser, { proxyServer, proxyBypassList }, site.url)];
    },
  },
];

/** The status and text of the URL in a new context, or the error of the navigation. */
async function textAt(
  browser: Place['browser'],
  options: Parameters<Place['browser']['createBrowserContext']>[0],
  url: string,
  credentials?: { username: string; password: string },
): Promise<unknown> {
  const context = await browser.createBrowserContext(options);
  const page = await context.newPage();
  if (credentials) await page.authenticate(credentials);
  const answer = await page.goto(url).catch(reported);
  const facts =
    typeof answer === 'string' ? answer : [answer?.status(), answer && (await answer.text())];
  await context.close();
  return facts;
}
