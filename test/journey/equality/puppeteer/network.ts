/** Requests, responses, interception, credentials, cookies. */
import { reported } from '../thing.ts';
import type { PuppeteerThing } from './place.ts';

export const NETWORK: readonly PuppeteerThing[] = [
  {
    name: 'a response, its request and its chain of redirects',
    async run({ page, site }) {
      await page.setExtraHTTPHeaders({ 'x-extra': 'yes' });
      const response = await page.goto(`${site.url}/to?url=/to%3Furl=${site.other}/headers`);
      const request = response?.request();
      const headers = (await response?.json()) as Record<string, string>;
      return [
        [response?.status(), response?.url(), response?.ok(), response?.fromCache()],
        [response?.headers()['content-type'], response?.securityDetails(), headers['x-extra']],
        request?.redirectChain().map((one) => [one.url(), one.response()?.status()]),
        [request?.isNavigationRequest(), request?.resourceType(), request?.method()],
      ];
    },
  },
  {
    name: 'requests, responses and failures are reported in order',
    async run({ page, site }) {
      const seen: string[] = [];
      page.on('request', (one) => seen.push(`> ${one.resourceType()} ${one.url()}`));
      page.on('requestfinished', (one) => seen.push(`= ${one.url()}`));
      page.on('requestfailed', (one) => seen.push(`! ${one.url()} ${one.failure()?.errorText}`));
      await page.goto(site.url);
      await page.evaluate(`fetch('/reset').catch(() => {})`);
      await page.evaluate(`fetch('/echo', { method: 'POST', body: 'x' }).then((r) => r.text())`);
      return seen;
    },
  },
  {
    name: 'http auth: without, wrong and right credentials',
    async run({ context, site }) {
      const statuses: unknown[] = [];
      for (const password of [undefined, 'wrong', 'secret']) {
        const page = await context.newPage();
        if (password) await page.authenticate({ username: 'ada', password });
        const going = page.goto(`${site.url}/private`);
        statuses.push(await going.then((one) => one?.status(), reported));
        await page.close();
      }
      return statuses;
    },
  },
  {
    name: 'request interception: respond, abort, change',
    async run({ page, site }) {
      await page.setRequestInterception(true);
      page.on('request', (request) => {
        const { pathname } = new URL(request.url());
        const answer = { status: 201, contentType: 'application/json', body: '{"made":1}' };
        const headers = { ...request.headers(), 'x-own': 'mine' };
        const changed = { method: 'PUT', postData: 'changed' };
        if (pathname === '/made') return void request.respond(answer);
        if (pathname === '/aborted') return void request.abort('connectionreset');
        if (pathname === '/headers') return void request.continue({ headers });
        if (pathname === '/echo') return void request.continue(changed);
        if (pathname === '/moved') return void request.continue({ url: `${site.url}/two` });
        request.continue().catch(() => undefined);
      });
      await page.goto(site.url);
      const failed = new Promise<string | undefined>((resolve) => {
        page.once('requestfailed', (one) => resolve(one.failure()?.errorText));
      });
      const aborted = await page.evaluate(`fetch('/aborted').catch(String)`);
      return [
        await page.evaluate(`fetch('/made').then(async (r) => [r.status, await r.json()])`),
        aborted,
        await failed,
        await page.evaluate(`fetch('/headers').then((r) => r.json()).then((h) => h['x-own'])`),
        await page.evaluate(`fetch('/echo', { method: 'POST', body: 'b' }).then((r) => r.text())`),
        await (await page.goto(`${site.url}/moved`))?.text(),
        page.url(),
      ];
    },
  },
  {
    name: 'interception in a frame of another site and of its worker',
    async run({ page, site }) {
      const seen: string[] = [];
      await page.setRequestInterception(true);
      page.on('request', (request) => {
        seen.push(request.url());
        const body = '<h1>from the driver</h1>';
        const isInner = request.url() === `${site.other}/two`;
        void (isInner ? request.respond({ contentType: 'text/html', body }) : request.continue());
      });
      await page.goto(`${site.url}/frame?of=${site.other}/two`);
      const frame = await (await page.waitForSelector('iframe'))?.contentFrame();
      const text = await frame?.$eval('h1', (one) => one.textContent);
      await frame?.evaluate(`fetch('/data.json').then((r) => r.text())`);
      return [text, seen];
    },
  },
  {
    name: 'cookies: set by a site and by the driver, filtered, deleted',
    async run({ context, page, site }) {
      await page.goto(`${site.url}/cookie`);
      const named = { name: 'e', value: '5', domain: 'named.example', path: '/p' };
      await context.setCookie(
        { name: 'd', value: '4', domain: '127.0.0.1', sameSite: 'Lax' },
        { ...named, expires: 4_000_000_000 },
      );
      const all = (await context.cookies())
        .map(({ expires, ...one }) => ({ ...one, lasts: expires > 0 }))
        .sort((a, b) => a.name.localeCompare(b.name));
      const visible = await page.evaluate('document.cookie');
      await context.deleteMatchingCookies({ name: 'a', url: site.url });
      await context.deleteCookie(...(await context.cookies()).filter(({ name }) => name === 'e'));
      return [all, visible, (await context.cookies()).map(({ name }) => name).sort()];
    },
  },
];
