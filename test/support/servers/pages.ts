/**
 * Pages for one-shots on 127.0.0.1: what a request sent, what comes late, and pages that end no
 * load. `await using site = await startPages()`.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

const html =
  (body: string, status = 200): Answer =>
  (response) => {
    response.writeHead(status, { 'content-type': 'text/html; charset=utf-8' });
    response.end(`<!doctype html><link rel="icon" href="data:,">${body}`);
  };

const ANSWERS: Readonly<Record<string, Answer>> = {
  '/': html('<title>The inn</title><h1>The inn</h1><a href="/rooms">Rooms</a>'),
  '/rooms': html('<title>Rooms</title>rooms'),
  '/late': html(`<title>Late</title><script>
    setTimeout(() => document.body.insertAdjacentHTML('beforeend', '<p id=late>late</p>'), 300);
  </script>`),
  '/tall': html('<title>Tall</title><body style="margin:0"><div style="height:3000px">tall</div>'),
  '/missing': html('<title>Gone</title>not here', 404),
  '/dialog': html('<title>Dialog</title><script>confirm("sure?")</script>after'),
  '/closes': html('<script>window.close()</script>'),
  '/hangs': html('<title>Hangs</title><script>addEventListener("load",()=>{for(;;);})</script>'),
  '/echo': (response, { headers }) => {
    html(`<pre>${JSON.stringify(headers).replaceAll('<', '&lt;')}</pre>`)(response, {} as never);
  },
  '/moved': (response) => void response.writeHead(302, { location: '/rooms' }).end(),
  '/loop': (response) => void response.writeHead(302, { location: '/loop' }).end(),
  '/inside': (response) => void response.writeHead(302, { location: 'http://10.1.2.3/' }).end(),
  '/crash': (response) => void response.destroy(),
  '/empty': (response) => void response.writeHead(204).end(),
  '/data.json': (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'x-own': 'yes' }).end('{"a":1}');
  },
  '/engine/search': (response) => {
    const results = ['The inn', 'The yard'].map((title) => ({
      title,
      url: 'https://inn.example/',
    }));
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ results }));
  },
  '/picture': (response) => {
    response
      .writeHead(200, { 'content-type': 'image/gif' })
      .end(Buffer.from('GIF89a\xff', 'latin1'));
  },
  '/large': (response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).end('x'.repeat(5 << 20));
  },
  '/download': (response) => {
    const disposition = 'attachment; filename="x.bin"';
    response.writeHead(200, {
      'content-type': 'application/octet-stream',
      'content-disposition': disposition,
    });
    response.end('bytes');
  },
  // answered, and never complete
  '/endless': (response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.write('<!doctype html><title>Endless</title><p>begun');
  },
  '/silent': () => undefined,
};

export type Pages = AsyncDisposable & {
  /** http://127.0.0.1:<port> */
  url: string;
  /** Requested paths, in order. */
  visits: readonly string[];
};

export async function startPages(): Promise<Pages> {
  const visits: string[] = [];
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://pages');
    visits.push(pathname);
    (ANSWERS[pathname] ?? html('no such page', 404))(response, request);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    visits,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
