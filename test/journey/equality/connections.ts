/** Connections that fail, addresses that are refused, sockets, proxies. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { reported, type Thing } from './thing.ts';

export const CONNECTIONS: readonly Thing[] = [
  {
    name: 'hosts and ports that cannot be reached',
    async run({ context }) {
      const refused = await closedPort();
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
    name: 'addresses that a page may not have',
    async run({ page, site }) {
      const errors: string[] = [];
      for (const url of ['http://', 'foo', 'http://127.0.0.1:1/', `${site.url}/reset`]) {
        errors.push(await page.goto(url).then(() => 'a page', reported));
      }
      return errors;
    },
  },
  {
    name: 'addresses of other schemes',
    async run({ page }) {
      const errors: string[] = [];
      for (const url of ['foo://bar', 'file:///etc/hostname']) {
        errors.push(await page.goto(url).then(() => 'a page', reported));
      }
      return errors;
    },
  },
  {
    name: 'WebSockets: text, bytes, the end, a refused one',
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
  {
    name: 'a proxy of one context',
    async run({ browser }) {
      await using proxy = await ownProxy();
      const context = await browser.newContext({ proxy: { server: proxy.url } });
      const page = await context.newPage();
      const response = await page.goto('http://named-by.invalid/x');
      const text = await response?.text();
      await context.close();
      return [response?.status(), text];
    },
  },
];

async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const closed = once(server, 'close');
  server.close();
  await closed;
  return port;
}

/** Answers for every host, to a request for a whole address and through a tunnel alike. */
async function ownProxy(): Promise<AsyncDisposable & { url: string }> {
  const server = createServer(({ headers }, response) => {
    response.writeHead(200, { connection: 'close' }).end(`proxied for ${headers.host}`);
  });
  server.on('connect', (_, socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    server.emit('connection', socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
