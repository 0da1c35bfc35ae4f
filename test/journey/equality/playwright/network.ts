/** Requests, responses and routes. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reported } from '../thing.ts';
import type { PlaywrightThing } from './place.ts';

export const NETWORK: readonly PlaywrightThing[] = [
  {
    name: 'a response: status, headers, body, sizes',
    async run({ page, site }) {
      const response = await page.goto(site.url);
      if (!response) throw new Error('no response');
      const request = response.request();
      const headers = await response.allHeaders();
      const sizes = await request.sizes();
      return [
        response.status(),
        response.statusText(),
        Object.keys(headers).sort(),
        headers['content-type'],
        await response.text(),
        [sizes.responseBodySize, sizes.responseHeadersSize > 0, sizes.requestBodySize],
        await response.securityDetails(),
        response.fromServiceWorker(),
        request.isNavigationRequest(),
        request.resourceType(),
        request.method(),
      ];
    },
  },
  {
    name: 'the address of a server',
    async run({ page, site }) {
      const address = await (await page.goto(site.url))?.serverAddr();
      return [address?.ipAddress, `http://127.0.0.1:${address?.port}` === site.url];
    },
  },
  {
    name: "a request's headers, as the site received them",
    options: { extraHTTPHeaders: { 'x-extra': 'yes' }, userAgent: 'a user agent' },
    async run({ page, site }) {
      const response = await page.goto(`${site.url}/headers`);
      return await response?.json();
    },
  },
  {
    name: 'redirects, and their chain',
    async run({ page, site }) {
      const response = await page.goto(`${site.url}/to?url=/to%3Furl=${site.other}/two`);
      const chain: string[] = [];
      for (let one = response?.request(); one; one = one.redirectedFrom() ?? undefined) {
        chain.push(`${(await one.response())?.status()} ${one.url()}`);
      }
      return [chain, page.url()];
    },
  },
  {
    name: 'http auth: without, wrong and right credentials',
    async run({ browser, page, site }) {
      const statuses: unknown[] = [
        await page.goto(`${site.url}/private`).then((one) => one?.status(), reported),
      ];
      for (const password of ['wrong', 'secret']) {
        const context = await browser.newContext({
          httpCredentials: { username: 'ada', password },
        });
        const one = await context.newPage();
        statuses.push(
          await one.goto(`${site.url}/private`).then((found) => found?.status(), reported),
        );
        await context.close();
      }
      return statuses;
    },
  },
  {
    name: 'routes: fulfil, abort, change, fall back',
    async run({ context, page, site }) {
      await context.route('**/fulfilled', (route) =>
        route.fulfill({ json: { a: 1 }, status: 201 }),
      );
      await page.route('**/aborted', (route) => route.abort('connectionreset'));
      await page.route('**/headers', (route, request) => {
        return route.continue({ headers: { ...request.headers(), 'x-own': 'mine' } });
      });
      await page.route('**/echo', (route) =>
        route.continue({ method: 'PUT', postData: 'changed' }),
      );
      await page.route('**/two', async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, body: `${await response.text()}<p>patched</p>` });
      });
      await page.route('**/fulfilled', (route) => route.fallback());
      await page.goto(site.url);
      const failed = page.waitForEvent('requestfailed');
      const aborted = await page.evaluate(`fetch('/aborted').catch(String)`);
      return [
        await page.evaluate(`fetch('/fulfilled').then(async (r) => [r.status, await r.json()])`),
        aborted,
        (await failed).failure(),
        await page.evaluate(`fetch('/headers').then((r) => r.json()).then((h) => h['x-own'])`),
        await page.evaluate(`fetch('/echo', { method: 'POST', body: 'b' }).then((r) => r.text())`),
        await (await page.goto(`${site.url}/two`))?.text(),
      ];
    },
  },
  {
    name: 'requests and failures are reported in order',
    async run({ page, site }) {
      const seen: string[] = [];
      page.on('request', (one) => seen.push(`> ${one.resourceType()} ${one.url()}`));
      page.on('requestfinished', (one) => seen.push(`= ${one.url()}`));
      page.on('requestfailed', (one) => seen.push(`! ${one.url()} ${one.failure()?.errorText}`));
      await page.goto(site.url);
      await page.evaluate(`fetch('/reset').catch(() => {})`);
      await page.evaluate(`fetch('/data.json').then((r) => r.text())`);
      await page.evaluate(`fetch('/echo', { method: 'POST', body: 'x' }).then((r) => r.text())`);
      return seen;
    },
  },
  {
    name: 'a streamed response, EventSource, XHR, a beacon',
    async run({ page, site }) {
      await page.goto(site.url);
      return await page.evaluate(`(async () => {
        const response = await fetch('/stream');
        const reader = response.body.getReader();
        let text = '';
        for (let part = await reader.read(); !part.done; part = await reader.read()) {
          text += new TextDecoder().decode(part.value);
        }
        const events = await new Promise((resolve) => {
          const seen = [];
          const source = new EventSource('/stream');
          source.onmessage = ({ data }) => seen.push(data);
          source.onerror = () => { source.close(); resolve(seen); };
        });
        const xhr = await new Promise((resolve) => {
          const one = new XMLHttpRequest();
          one.onload = () => resolve([one.status, one.responseText]);
          one.open('POST', '/echo');
          one.send('body');
        });
        return [text, events, xhr, navigator.sendBeacon('/echo', 'x')];
      })()`);
    },
  },
  {
    name: 'HAR of a context',
    async run({ browser, site, directory }) {
      const path = join(directory, 'a.har');
      const context = await browser.newContext({ recordHar: { path, content: 'embed' } });
      const page = await context.newPage();
      await page.goto(`${site.url}/styled`);
      await context.close();
      type Har = { log: { pages: unknown[]; entries: HarEntry[] } };
      type HarEntry = {
        request: { method: string; url: string };
        response: { status: number; content: { size: number; text?: string } };
      };
      const { log } = JSON.parse(await readFile(path, 'utf8')) as Har;
      return log.entries
        .map(({ request, response: { status, content } }) => {
          return [request.method, request.url, status, content.size, content.text];
        })
        .sort();
    },
  },
  {
    name: 'requests of the driver share cookies with pages',
    async run({ context, page, site }) {
      const response = await context.request.get(`${site.url}/cookie`);
      await page.goto(`${site.url}/headers`);
      return [response.status(), (await page.textContent('body'))?.includes('a=1')];
    },
  },
  {
    name: 'CSP applies, and can be bypassed',
    async run({ browser, page, site }) {
      const tag = { content: 'window.added = 1' };
      await page.goto(`${site.url}/strict`);
      const refused = await page.addScriptTag(tag).then(() => 'added', reported);
      const context = await browser.newContext({ bypassCSP: true });
      const other = await context.newPage();
      await other.goto(`${site.url}/strict`);
      await other.addScriptTag(tag);
      const added = await other.evaluate('added');
      await context.close();
      return [refused, added];
    },
  },
];
