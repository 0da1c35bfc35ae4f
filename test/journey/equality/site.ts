/** The web site that both browsers open. Its responses depend on the request only. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { WebSocketServer } from 'ws';

export type Site = AsyncDisposable & {
  /** http://127.0.0.1:<port> */
  url: string;
  /** The same server by another host name, which is another site for a browser. */
  other: string;
};

const ICON = '<link rel="icon" href="data:,">';
const PAGES: Record<string, [type: string, body: string]> = {
  '/': [
    'text/html',
    `<!doctype html><title>home</title>${ICON}<h1>Home</h1><a href="/two">two</a>`,
  ],
  '/two': ['text/html', `<!doctype html><title>two</title>${ICON}<h1>Two</h1>`],
  '/style.css': ['text/css', 'h1 { color: red } .unused { color: blue }'],
  '/script.js': ['text/javascript', 'function used() {}\nfunction unused() {}\nused();'],
  '/styled': [
    'text/html',
    `<!doctype html>${ICON}<link rel=stylesheet href=/style.css><script src=/script.js></script>
     <h1>styled</h1>`,
  ],
  '/worker.js': ['text/javascript', 'onmessage = ({ data }) => postMessage(data * 2)'],
  '/shared.js': [
    'text/javascript',
    'let n = 0; onconnect = ({ ports: [port] }) => port.postMessage(++n)',
  ],
  '/sw.js': [
    'text/javascript',
    `oninstall = () => skipWaiting();
     onactivate = (event) => event.waitUntil(clients.claim());
     onfetch = (event) => {
       if (event.request.url.endsWith('/from-worker')) event.respondWith(new Response('worker'));
     };`,
  ],
  '/data.json': ['application/json', '{"a":1}'],
};

export async function startSite(): Promise<Site> {
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) => {
    socket.on('message', (data, isBinary) => {
      if (String(data) === 'bye') socket.close(4001, 'as wished');
      else socket.send(data, { binary: isBinary });
    });
  });
  server.listen(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    other: `http://localhost:${port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets.clients) socket.terminate();
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://site');
  const found = PAGES[pathname];
  if (found) return send(response, 200, ...found);
  const { authorization, host, ...headers } = request.headers;
  switch (pathname) {
    case '/to':
      return void response.writeHead(302, { location: searchParams.get('url') ?? '/' }).end();
    case '/file':
      response.setHeader('content-disposition', 'attachment; filename="a file.txt"');
      return send(response, 200, 'text/plain', 'downloaded');
    case '/private': {
      const wanted = `Basic ${Buffer.from('ada:secret').toString('base64')}`;
      if (authorization === wanted) return send(response, 200, 'text/html', '<h1>private</h1>');
      response.setHeader('www-authenticate', 'Basic realm="inn"');
      return send(response, 401, 'text/html', '<h1>who?</h1>');
    }
    case '/headers':
      return send(response, 200, 'application/json', JSON.stringify(headers));
    case '/echo':
      return send(response, 200, 'text/plain', `${request.method} ${await text(request)}`);
    case '/cookie':
      response.setHeader('set-cookie', ['a=1; Path=/', 'b=2; HttpOnly; SameSite=Strict']);
      return send(response, 200, 'text/html', '<h1>cookie</h1>');
    case '/strict':
      response.setHeader('content-security-policy', "script-src 'none'; default-src 'none'");
      return send(response, 200, 'text/html', `${ICON}<h1>strict</h1>`);
    case '/frame':
      return send(response, 200, 'text/html', frame(searchParams.get('of') ?? ''));
    case '/stream':
      return await stream(response);
    case '/reset':
      return void request.socket.destroy();
    default:
      return send(response, 404, 'text/html', `<title>none</title>${ICON}<h1>Not here</h1>`);
  }
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

function frame(url: string): string {
  return `<!doctype html><title>frame</title>${ICON}<iframe name=inner src="${url}"></iframe>`;
}

async function stream(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'x-served': 'yes' });
  for (const part of ['one', 'two', 'three']) {
    response.write(`data: ${part}\n\n`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  response.end();
}
