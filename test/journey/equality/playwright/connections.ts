/** Failed connections, refused URLs, sockets. */
import { freePort } from '../../../support/port.ts';
import { reported } from '../thing.ts';
import type { PlaywrightThing } from './place.ts';

export const CONNECTIONS: readonly PlaywrightThing[] = [
  {
    name: 'unreachable hosts and ports',
    async run({ context }) {
      const refused = await freePort();
      const errors: string[] = [];
      for (const host of ['no-such-host.invalid', '[100::1]', `127.0.0.1:${refused}`]) {
        for (const scheme of ['http', 'https']) {
          const page = await context.newPage();
          const error = await page.goto(`${scheme}://${host}/`).then(() => 'a page', reported);
          errors.push(error.replaceAll(`:${refused}`, ''));
          await page.close();
        }
      }
      return errors;
    },
  },
  {
    name: 'URLs that cannot be opened',
    async run({ page, site }) {
      const errors: string[] = [];
      for (const url of ['http://', 'foo', 'http://127.0.0.1:1/', `${site.url}/reset`]) {
        errors.push(await page.goto(url).then(() => 'a page', reported));
      }
      return errors;
    },
  },
  {
    name: 'URLs of other schemes',
    async run({ page }) {
      const errors: string[] = [];
      for (const url of ['foo://bar', 'file:///etc/hostname']) {
        errors.push(await page.goto(url).then(() => 'a page', reported));
      }
      return errors;
    },
  },
  {
    name: 'WebSockets: text, bytes, close, refusal',
    async run({ page, site }) {
      await page.goto(site.url);
      const frames: unknown[] = [];
      page.on('websocket', (socket) => {
        socket.on('framereceived', ({ payload }) => frames.push(String(payload)));
        socket.on('framesent', ({ payload }) => frames.push(String(payload)));
      });
      const seen = await page.evaluate(`new Promise((resolve) => {
        const seen = [];
        const socket = new WebSocket(location.href.replace('http', 'ws'));
        socket.binaryType = 'arraybuffer';
        socket.onopen = () => socket.send('text');
        socket.onmessage = ({ data }) => {
          seen.push(typeof data === 'string' ? data : [...new Uint8Array(data)]);
          socket.send(seen.length === 1 ? new Uint8Array([1, 2]) : 'bye');
        };
        socket.onclose = ({ code, reason, wasClean }) => resolve([...seen, code, reason, wasClean]);
      })`);
      const refused = await page.evaluate(`new Promise((resolve) => {
        const socket = new WebSocket('ws://127.0.0.1:1/');
        socket.onclose = ({ code }) => resolve(code);
      })`);
      return [seen, frames, refused];
    },
  },
  {
    name: 'offline and online again',
    async run({ context, page, site }) {
      await page.goto(site.url);
      const look = `fetch('/data.json')
        .then((r) => r.status, String).then((s) => [navigator.onLine, s])`;
      const before = await page.evaluate(look);
      await context.setOffline(true);
      const offline = await page.evaluate(look);
      const error = await page.goto(`${site.url}/two`).then(() => 'a page', reported);
      await context.setOffline(false);
      return [before, offline, error, (await page.goto(`${site.url}/two`))?.status()];
    },
  },
];
