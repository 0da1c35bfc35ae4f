/** Tunnels between real sockets: forwarding, refusals and ends. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocket, WebSocketServer } from 'ws';
import type { HandOver } from '../../../gateway/process/runner-process.ts';
import type { Place } from '../../../gateway/sessions/runner-client.ts';
import { isWebSocket, openTunnels } from '../../../gateway/sessions/websocket-proxy.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { until } from '../../support/poll.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('gateway/sessions/websocket-proxy');
const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';
const UPGRADE =
  'host: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n' +
  `sec-websocket-version: 13\r\nsec-websocket-key: ${KEY}\r\n`;

type Scene = {
  /** Address that core returns for the session; by default the scene's own session server. */
  locate?: (place: Place, signal: AbortSignal) => Promise<Place>;
  handOver?: HandOver;
  /** The session server listens on a port instead of a socket file. */
  isFar?: boolean;
};

async function open({ locate, handOver, isFar = false }: Scene = {}) {
  await using cleanup = new AsyncDisposableStack();
  const dir = cleanup.use(tempDirectory());
  const asked: IncomingMessage[] = [];
  const runner = createServer();
  const sockets = new WebSocketServer({ server: runner, perMessageDeflate: true });
  sockets.on('connection', (_socket, request) => asked.push(request));
  const path = join(dir.path, 'runner.sock');
  runner.listen(isFar ? { port: 0, host: '127.0.0.1' } : { path });
  await once(runner, 'listening');
  const { port } = isFar ? (runner.address() as AddressInfo) : { port: 0 };
  const address = isFar ? `127.0.0.1:${port}` : `unix:${path}`;
  const keys = { signingKey: 'the key', apiKeyId: 'abc', expiresAt: undefined };
  const place: Place = {
    sessionId: 's',
    address,
    isReadOnly: false,
    handoffId: '',
    runnerId: '',
    trust: undefined,
    ...keys,
  };
  const tunnels = openTunnels({
    clients: {} as Pick<Clients, 'sessions'>,
    locate: async (_credential, signal) => locate?.(place, signal) ?? place,
    log: openLog({ role: 'test', level: 'silent' }),
    ...(handOver && { handOver }),
  });
  const server = createServer({ shouldUpgradeCallback: isWebSocket }, (_request, response) => {
    response.end('plain');
  });
  server.on('upgrade', tunnels.upgrade);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanup.defer(() => {
    for (const one of [server, runner]) {
      one.close();
      one.closeAllConnections();
    }
    for (const socket of sockets.clients) socket.terminate();
  });
  cleanup.defer(() => tunnels.close());
  const own = (server.address() as AddressInfo).port;
  const kept = cleanup.move();
  return {
    tunnels,
    asked,
    sockets,
    port: own,
    url: `ws://127.0.0.1:${own}`,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

async function connected(url: string): Promise<WebSocket> {
  const client = new WebSocket(url);
  await once(client, 'open');
  return client;
}

async function untilAborted(signal: AbortSignal): Promise<never> {
  await once(signal, 'abort');
  throw signal.reason;
}

/** The whole response to these bytes, until the connection closes. */
async function said(port: number, bytes: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.write(bytes);
  let text = '';
  for await (const part of socket) text += part;
  return text;
}

test('the upgrade is replayed with the server token and the required headers only', async () => {
  for (const isFar of [false, true]) {
    await using scene = await open({ isFar });
    const client = new WebSocket(`${scene.url}/connect?signingKey=theirs`, ['chat'], {
      headers: { origin: 'https://elsewhere.example', cookie: 'a=b', 'x-svc-api-key': 'secret' },
    });
    await once(client, 'open');
    const { url, headers } = scene.asked[0] as IncomingMessage;
    assert.is(url, '/connect?signingKey=the%20key&apiKeyId=abc');
    assert.equal(Object.keys(headers).sort(), [
      ...['connection', 'host', 'sec-websocket-key', 'sec-websocket-protocol'],
      ...['sec-websocket-version', 'upgrade', 'x-tabern-origin'],
    ]);
    // of links in answers, as the client knows the service
    assert.is(headers['x-tabern-origin'], scene.url.replace(/^ws/, 'http'));
    assert.is(client.extensions, '');
    assert.is(client.protocol, 'chat');
  }
});

test('the parameters of a resumable connection reach the relay, and no others', async () => {
  await using scene = await open();
  await connected(`${scene.url}/connect?signingKey=x&resume=new`);
  const resumes = 'resume=a%26b%20c&received=7&other=1';
  await connected(`${scene.url}/devtools/page/A?signingKey=x&${resumes}`);
  await connected(`${scene.url}/view?token=t&resume=new`);
  const { asked, port } = scene;
  const own = 'signingKey=the%20key&apiKeyId=abc';
  assert.is(asked[0]?.url, `/connect?${own}&resume=new`);
  assert.is(asked[1]?.url, `/devtools/page/A?${own}&resume=a%26b%20c&received=7`);
  assert.is(asked[2]?.url, `/view?${own}&resume=new`);
  const refused: [query: string, message: string][] = [
    ['signingKey=x&resume=a&resume=b', '`resume` must be given once.'],
    ['signingKey=x&received=1&received=2', '`received` must be given once.'],
    ['apiKey=x&resume=new', '`resume` needs a session: `sessionId` or `signingKey`.'],
  ];
  for (const [query, message] of refused) {
    const text = await said(port, `GET /connect?${query} HTTP/1.1\r\n${UPGRADE}\r\n`);
    assert.match(text, /^HTTP\/1.1 400 /);
    assert.ok(text.includes(JSON.stringify(message)), text);
  }
});

test('a view of a read-only token is read-only, whatever its client wants', async () => {
  const locate = async (place: Place) => ({ ...place, isReadOnly: true });
  for (const wanted of ['', '&readonly=false', '&readonly=true', '&readonly=false&readonly=x']) {
    await using scene = await open({ locate });
    await connected(`${scene.url}/view?token=t${wanted}`);
    const { searchParams } = new URL(must(scene.asked[0]?.url, 'a path'), 'ws://x');
    assert.equal(searchParams.getAll('readonly'), ['true'], wanted);
  }
});

test('a view keeps its parameters, except its token and expiry', async () => {
  const expiresAt = new Date(4_000_000_000_000);
  await using scene = await open({ locate: async (place) => ({ ...place, expiresAt }) });
  await connected(`${scene.url}/view?token=t&target=a%26b&until=9&signingKey=theirs&apiKeyId=x`);
  const found = new URL(scene.asked[0]?.url ?? '', 'ws://runner');
  const until = expiresAt.getTime();
  const kept = `signingKey=the+key&apiKeyId=abc&target=a%26b&until=${until}`;
  assert.is(String(found.searchParams), kept);
});

test('large binary messages pass in both directions, with back-pressure', async () => {
  await using scene = await open();
  const client = await connected(`${scene.url}/connect?signingKey=k`);
  const [peer] = scene.sockets.clients;
  const large = Buffer.alloc(8 << 20, 0xff);
  const there = once(peer as WebSocket, 'message');
  client.send(large);
  assert.ok((await there)[0].equals(large));
  client.pause();
  const back = once(client, 'message');
  for (let sent = 0; sent < 16; sent++) peer?.send(large);
  // 128 MiB: what the kernel does not hold waits where it was sent, and not in the gateway
  await until(() => (peer?.bufferedAmount ?? 0) > 64 << 20);
  client.resume();
  assert.ok((await back)[0].equals(large));
  await until(() => peer?.bufferedAmount === 0);
});

test('the end of one side ends the other', async () => {
  await using scene = await open();
  const client = await connected(`${scene.url}/connect?signingKey=k`);
  const [peer] = scene.sockets.clients;
  const left = once(peer as WebSocket, 'close');
  client.terminate();
  await left;
  const other = await connected(`${scene.url}/connect?signingKey=k`);
  const closed = once(other, 'close');
  for (const one of scene.sockets.clients) one.close(4000, 'why');
  const [code, reason] = await closed;
  assert.is(`${code} ${reason}`, '4000 why');
});

test('an upgrade of another path is refused once, with a JSON error', async () => {
  await using scene = await open({
    locate: async () => {
      throw new Fault('SESSION_ENDED', 'The session has ended.');
    },
  });
  const key = `sec-websocket-key: ${KEY}\r\n`;
  const refusals: [string, number][] = [
    [`GET /connect?signingKey=k HTTP/1.1\r\n${UPGRADE}\r\n`, 410],
    [`GET /connect HTTP/1.1\r\n${UPGRADE}\r\n`, 401],
    [`GET /v1/sessions HTTP/1.1\r\n${UPGRADE}\r\n`, 404],
    [`POST /connect?signingKey=k HTTP/1.1\r\n${UPGRADE}\r\n`, 400],
    [`GET /connect?signingKey=k HTTP/1.1\r\n${UPGRADE.replace('13', '8')}\r\n`, 400],
    [`GET /connect?signingKey=k HTTP/1.1\r\n${UPGRADE.replace(key, '')}\r\n`, 400],
    [`GET /connect?signingKey=k HTTP/1.1\r\n${UPGRADE.replace(KEY, 'short')}\r\n`, 400],
    [`GET http://other/connect?signingKey=k HTTP/1.1\r\n${UPGRADE}\r\n`, 400],
  ];
  for (const [bytes, status] of refusals) {
    const text = await said(scene.port, bytes);
    assert.is(text.match(/HTTP\/1\.1 \d/g)?.length, 1, text);
    assert.is(Number(text.slice(9, 12)), status, bytes);
    assert.is(JSON.parse(text.slice(text.indexOf('\r\n\r\n'))).statusCode, status);
    assert.match(text, /x-request-id: \S+/);
  }
  assert.equal(scene.asked, []);
  const plain = UPGRADE.replace('websocket', 'h2c').replace('Upgrade\r', 'Upgrade, close\r');
  assert.match(await said(scene.port, `GET / HTTP/1.1\r\n${plain}\r\n`), /200 OK[\s\S]*plain/);
});

test('an unreachable session server is a 502 without details of the machine', async () => {
  for (const address of ['unix:/nonexistent/runner.sock', '127.0.0.1:1']) {
    await using scene = await open({ locate: async (place) => ({ ...place, address }) });
    const text = await said(scene.port, `GET /?signingKey=k HTTP/1.1\r\n${UPGRADE}\r\n`);
    assert.match(text, /^HTTP\/1\.1 502 /);
    assert.not.match(text, /nonexistent|127\.0\.0\.1/);
  }
});

test('a disconnected client ends its wait', async () => {
  const asked = Promise.withResolvers<AbortSignal>();
  await using scene = await open({
    locate(_place, signal) {
      asked.resolve(signal);
      return untilAborted(signal);
    },
  });
  const socket = connect({ port: scene.port, host: '127.0.0.1' });
  socket.write(`GET /?signingKey=k HTTP/1.1\r\n${UPGRADE}\r\n`);
  const signal = await asked.promise;
  socket.destroy();
  await once(signal, 'abort');
  assert.equal(scene.asked, []);
});

test('a drain refuses waiting upgrades, and closes its half of the others', async () => {
  const asked = Promise.withResolvers<void>();
  let isFirst = true;
  await using scene = await open({
    locate: async (place, signal) => {
      if (isFirst) return place;
      asked.resolve();
      return await untilAborted(signal);
    },
  });
  const client = await connected(`${scene.url}/connect?signingKey=k`);
  isFirst = false;
  const waiting = said(scene.port, `GET /?signingKey=k HTTP/1.1\r\n${UPGRADE}\r\n`);
  await asked.promise;
  const closed = once(client, 'close');
  await scene.tunnels.close();
  await closed;
  assert.match(await waiting, /^HTTP\/1\.1 503 [\s\S]*shutting down/);
});

test('a client whose runner ends without a close frame hears why, once', async () => {
  await using scene = await open();
  for (const [end, told] of [
    ['terminate', '1011 the runner was lost'],
    ['close', '4000 why'],
  ] as const) {
    const upgraded = once(scene.sockets, 'connection') as Promise<[WebSocket]>;
    const client = await connected(`${scene.url}/connect?signingKey=k`);
    const [upstream] = await upgraded;
    upstream.send('a whole message');
    await once(client, 'message');
    const closed = once(client, 'close');
    if (end === 'close') upstream.close(4000, 'why');
    else upstream.terminate();
    const [code, reason] = await closed;
    assert.is(`${code} ${reason}`, told);
  }
});

test('the gateway keeps no state of a connection that was handed off', async () => {
  const handed = Promise.withResolvers<[string, Socket, string]>();
  await using scene = await open({
    handOver(address, socket, saidFirst) {
      handed.resolve([address, socket, String(saidFirst())]);
      return true;
    },
  });
  const answer = said(scene.port, `GET /?signingKey=k HTTP/1.1\r\n${UPGRADE}\r\nearly`);
  const [address, socket, first] = await handed.promise;
  assert.match(address, /^unix:/);
  assert.match(
    first,
    /^GET \/connect\?signingKey=the%20key&apiKeyId=abc HTTP\/1\.1\r\n[\s\S]*\r\n\r\nearly$/,
  );
  await scene.tunnels.close();
  socket.end('the runner’s');
  assert.is(await answer, 'the runner’s');
  assert.equal(scene.asked, []);
});

test.run();
