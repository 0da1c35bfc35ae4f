/** Routes of requests and sockets, HAR files. */
import { join } from 'node:path';
import { reported } from '../thing.ts';
import type { PlaywrightThing } from './place.ts';

export const ROUTES: readonly PlaywrightThing[] = [
  {
    name: 'routes read and change request bodies',
    async run({ page, site }) {
      const seen: unknown[] = [];
      await page.route('**/echo?*', async (route, request) => {
        seen.push([request.method(), request.postData(), request.postDataBuffer()?.length]);
        const { search } = new URL(request.url());
        if (search === '?same') await route.continue();
        else if (search === '?bytes') await route.continue({ postData: Buffer.from([65, 0, 66]) });
        else if (search === '?fetched') await route.fulfill({ response: await route.fetch() });
        else if (search === '?gone') await route.abort('addressunreachable');
        else await route.fulfill({ status: 418, headers: { 'x-a': 'b' }, body: 'made' });
      });
      await page.goto(site.url);
      for (const [query, body] of [
        ...[['same', `'text'`] as const, ['bytes', `'text'`] as const],
        ...[['fetched', `new URLSearchParams({ a: 'ä' })`] as const],
        ...[['gone', `JSON.stringify({ a: 1 })`] as const, ['made', `'x'.repeat(100000)`] as const],
      ]) {
        const posted = await page.evaluate(`fetch('/echo?${query}', { method: 'POST',
          body: ${body} }).then(async (r) => [r.status, r.headers.get('x-a'), await r.text()],
          String)`);
        seen.push(posted);
      }
      return seen;
    },
  },
  {
    name: 'a route of a redirect, of a popup, and a removed route',
    async run({ context, page, site }) {
      await context.route('**/moved', (route) => {
        return route.fulfill({ status: 302, headers: { location: '/two' } });
      });
      await context.route('**/popup', (route) => route.fulfill({ body: 'the popup' }));
      const moved = await page.goto(`${site.url}/moved`);
      const [popup] = await Promise.all([
        page.waitForEvent('popup'),
        page.evaluate(`void open('/popup')`),
      ]);
      await popup.waitForLoadState();
      const text = await popup.textContent('body');
      await context.unrouteAll();
      return [
        moved?.url(),
        moved?.status(),
        text,
        (await page.goto(`${site.url}/moved`))?.status(),
      ];
    },
  },
  {
    name: 'WebSocket routes: mocked, and forwarded with changes',
    async run({ page, site }) {
      await page.routeWebSocket('**/made', (socket) => {
        socket.onMessage((message) => socket.send(`made of ${String(message)}`));
      });
      await page.routeWebSocket('**/passed', (socket) => {
        const server = socket.connectToServer();
        socket.onMessage((message) => server.send(`changed ${String(message)}`));
      });
      await page.goto(site.url);
      const say = (path: string) => `new Promise((resolve) => {
        const socket = new WebSocket(location.href.replace('http', 'ws') + '${path}');
        socket.onopen = () => socket.send('text');
        socket.onmessage = ({ data }) => resolve(data);
      })`;
      return [await page.evaluate(say('made')), await page.evaluate(say('passed'))];
    },
  },
  {
    name: 'a HAR is recorded and replayed',
    async run({ context, page, site, directory }) {
      const path = join(directory, 'replay.har');
      await page.routeFromHAR(path, { update: true, updateContent: 'embed' });
      await page.goto(`${site.url}/styled`);
      await page.evaluate(`fetch('/echo', { method: 'POST', body: 'x' }).then((r) => r.text())`);
      await context.close();
      const again = await context.browser()?.newContext();
      if (!again) throw new Error('no browser');
      const other = await again.newPage();
      await other.routeFromHAR(path, { notFound: 'abort' });
      const text = await (await other.goto(`${site.url}/styled`))?.text();
      const posted = `fetch('/echo', { method: 'POST', body: 'x' }).then((r) => r.text())`;
      const facts = [text, await other.evaluate(posted)];
      const missing = await other.goto(`${site.url}/two`).then(() => 'a page', reported);
      await again.close();
      return [...facts, missing];
    },
  },
];
