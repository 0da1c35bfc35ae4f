import { Agent, get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { KEEP_ALIVE_MS } from '../../gateway/config.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { until } from '../support/poll.ts';
import { KEY, openGateway, raw } from './sessions/runner.ts';

const test = suite('gateway/main');
const HOST = 'host: x\r\n';

/** Status and JSON body of the only answer in `text`. */
function only(text: string): { status: number; body: { statusCode: number; error: string } } {
  assert.is(text.match(/HTTP\/1\.1 \d/g)?.length, 1, text.slice(0, 200));
  assert.match(text, /content-type: application\/json; charset=utf-8/i);
  assert.match(text, /x-request-id: \S+/i);
  const status = Number(text.slice(9, 12));
  const body = JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4));
  return { status, body };
}

const MALFORMED: [string, string, number][] = [
  ['no HTTP', 'hello\r\n\r\n', 400],
  ['unknown method', `BREW /v1/contexts HTTP/1.1\r\n${HOST}\r\n`, 400],
  [
    'two lengths',
    `POST / HTTP/1.1\r\n${HOST}content-length: 1\r\ncontent-length: 2\r\n\r\nab`,
    400,
  ],
  [
    'length and chunks',
    `POST / HTTP/1.1\r\n${HOST}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
  ],
  ['bare line feeds', 'GET / HTTP/1.1\nhost: x\n\n', 400],
  ['a NUL in a header', `GET / HTTP/1.1\r\n${HOST}a: \0\r\n\r\n`, 400],
  ['headers of 64 KiB', `GET / HTTP/1.1\r\n${HOST}a: ${'x'.repeat(65_536)}\r\n\r\n`, 431],
  ['10,000 headers', `GET / HTTP/1.1\r\n${HOST}${'a: b\r\n'.repeat(10_000)}\r\n`, 431],
  ['CONNECT', 'CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n', 405],
];

test('malformed HTTP receives one JSON error, then the connection closes', async () => {
  await using gateway = await openGateway();
  for (const [name, bytes, expected] of MALFORMED) {
    const { status, body } = only(await raw(gateway.url, bytes));
    assert.is(status, expected, name);
    assert.is(body.statusCode, expected, name);
  }
});

test('a request without Host, with two, or for another server is a 400', async () => {
  await using gateway = await openGateway();
  const end = 'connection: close\r\n\r\n';
  const requests = [
    `GET /healthz HTTP/1.1\r\n${end}`,
    `GET /healthz HTTP/1.1\r\n${HOST}${HOST}${end}`,
    `GET http://x/healthz HTTP/1.1\r\n${HOST}${end}`,
    `OPTIONS * HTTP/1.1\r\n${HOST}${end}`,
  ];
  for (const request of requests) {
    assert.is(only(await raw(gateway.url, request)).status, 400, request);
  }
});

test('an unknown expectation and an upgrade to h2c are served like any request', async () => {
  await using gateway = await openGateway();
  const end = 'connection: close\r\n\r\n';
  const expecting = `GET /none HTTP/1.1\r\n${HOST}expect: a-miracle\r\n${end}`;
  assert.is(only(await raw(gateway.url, expecting)).status, 404);
  const upgrade = `GET /none HTTP/1.1\r\n${HOST}upgrade: websocket\r\nconnection: upgrade\r\n\r\n`;
  assert.is(only(await raw(gateway.url, upgrade, /not found/)).status, 404);
});

test('a body with malformed chunks receives one answer', async () => {
  await using gateway = await openGateway();
  const head = `POST /v1/contexts HTTP/1.1\r\n${HOST}x-svc-api-key: ${KEY}\r\n`;
  const json = 'content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n';
  const text = await raw(gateway.url, `${head}${json}2\r\n{"\r\nzz\r\n`);
  assert.is(only(text).status, 400);
});

test('pipelined requests on one connection receive their responses in order', async () => {
  await using gateway = await openGateway();
  const one = `GET /a HTTP/1.1\r\n${HOST}\r\n`;
  const last = `GET /b HTTP/1.1\r\n${HOST}connection: close\r\n\r\n`;
  const text = await raw(gateway.url, one + last);
  assert.is(text.match(/HTTP\/1\.1 404/g)?.length, 2);
  assert.ok(text.indexOf('GET /a') < text.indexOf('GET /b'));
});

test('close waits for requests in flight and not for idle connections', async () => {
  const begun = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  await using gateway = await openGateway({
    contexts: {
      async listContexts() {
        begun.resolve();
        await release.promise;
        return { data: [], limit: 20, nextCursor: null };
      },
    },
  });
  const agent = new Agent({ keepAlive: true });
  const headers = { 'x-svc-api-key': KEY };
  const status = (path: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const answered = (answer: IncomingMessage) => {
        answer.resume().on('end', () => resolve(answer.statusCode));
      };
      get(gateway.url + path, { agent, headers }, answered).on('error', reject);
    });
  assert.is(await status('/healthz'), 200);
  const inFlight = status('/v1/contexts');
  await begun.promise;
  const startedAt = Date.now();
  const closed = gateway.close();
  release.resolve();
  assert.is(await inFlight, 200);
  await closed;
  assert.ok(Date.now() - startedAt < KEEP_ALIVE_MS / 4);
  agent.destroy();
  const refused = await fetch(`${gateway.url}/healthz`).catch((error: Error) => error.name);
  assert.is(refused, 'TypeError');
});

test('a request on an open connection while draining is a 503', async () => {
  const begun = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  await using gateway = await openGateway({
    contexts: {
      async listContexts() {
        begun.resolve();
        await release.promise;
        return { data: [], limit: 20, nextCursor: null };
      },
    },
  });
  const kept = open(gateway.url);
  kept.socket.write(`GET /healthz HTTP/1.1\r\n${HOST}\r\n`);
  await until(() => /\{"status":"ok"\}$/.test(kept.text()));
  const inFlight = open(gateway.url);
  inFlight.socket.write(`GET /v1/contexts HTTP/1.1\r\n${HOST}x-svc-api-key: ${KEY}\r\n\r\n`);
  await begun.promise;
  const closed = gateway.close();
  kept.socket.write(`GET /healthz HTTP/1.1\r\n${HOST}\r\n`);
  await kept.ended;
  const told = kept.text().slice(kept.text().indexOf('{"status":"ok"}') + 15);
  assert.match(told, /^HTTP\/1\.1 503 [\s\S]*"The service is shutting down\."/);
  assert.match(told, /retry-after: 1\r\n/i);
  assert.match(told, /connection: close\r\n/i);
  release.resolve();
  await inFlight.ended;
  await closed;
  assert.match(inFlight.text(), /^HTTP\/1\.1 200 [\s\S]*connection: close\r\n/i);
});

test('a request that came while a process without CPU closes is answered', async () => {
  const page = { data: [], limit: 20, nextCursor: null };
  await using gateway = await openGateway({ contexts: { listContexts: async () => page } });
  const idle = open(gateway.url);
  const request = `GET /v1/contexts HTTP/1.1\r\nhost: tabern\r\nx-svc-api-key: ${KEY}\r\n\r\n`;
  idle.socket.write(request);
  await until(() => idle.text().endsWith('}'));
  const closed = gateway.close();
  await turn(); // its notice has begun, and timers are next
  idle.socket.write(request);
  const endsAt = performance.now() + 1_000;
  while (performance.now() < endsAt); // and ends before the request is read
  await closed;
  await idle.ended;
  assert.match(idle.text(), /\}HTTP\/1\.1 503 [\s\S]*connection: close\r\n/i);
});

/** A connection, all bytes received over it, and its end. */
function open(url: string) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  const ended = new Promise((resolve) => socket.once('close', resolve));
  return { socket, ended, text: () => text };
}

test('closing under load fails requests with a 503 only', async () => {
  const page = { data: [], limit: 20, nextCursor: null };
  await using gateway = await openGateway({ contexts: { listContexts: async () => page } });
  const agent = new Agent({ keepAlive: true, maxSockets: 20 });
  const headers = { 'x-svc-api-key': KEY };
  const ends: string[] = [];
  const ask = () =>
    new Promise<string>((resolve) => {
      const asked = get(`${gateway.url}/v1/contexts`, { agent, headers }, (answer) => {
        answer.resume().on('end', () => resolve(String(answer.statusCode)));
        answer.on('error', () => resolve('cut'));
      });
      asked.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'none'));
    });
  const client = async () => {
    let end = '200';
    for (; end === '200'; ends.push(end)) end = await ask();
  };
  const clients = Array.from({ length: 20 }, client);
  await until(() => ends.length > 500);
  await gateway.close();
  await Promise.all(clients);
  agent.destroy();
  assert.equal([...new Set(ends)].sort(), ['200', '503']);
  assert.is(ends.filter((end) => end === '503').length, 20, 'each was told once');
});

test('a service that gives up its port answers the handshakes that wait', async () => {
  const begun = Promise.withResolvers<void>();
  const found = Promise.withResolvers<void>();
  await using gateway = await openGateway({
    sessions: {
      async locateSession() {
        begun.resolve();
        await found.promise;
        throw new Fault('RESOURCE_NOT_FOUND', 'No such session.');
      },
    },
  });
  const client = open(gateway.url);
  const upgrade = 'connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n';
  const key = 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
  client.socket.write(`GET /?signingKey=x HTTP/1.1\r\n${HOST}${upgrade}${key}\r\n`);
  await begun.promise;
  let isGiven = false;
  const given = gateway.giveUp().then(() => {
    isGiven = true;
  });
  await Promise.race([given, pause(2_000)]); // without the handshake it gives up in half a second
  assert.not(isGiven, 'a handshake waits');
  found.resolve();
  await client.ended;
  assert.match(client.text(), /^HTTP\/1\.1 404 [\s\S]*No such session/);
  await given;
});

test('a port in use rejects the start', async () => {
  await using gateway = await openGateway();
  const { startGateway } = await import('../../gateway/main.ts');
  const { gatewayConfig } = await import('../../gateway/config.ts');
  const { openLog } = await import('../../proto/common/log.ts');
  const { localClients } = await import('../../proto/rpc/services.ts');
  const { handlersOf } = await import('./sessions/runner.ts');
  const clients = localClients(handlersOf({}), { onError: () => undefined });
  const log = openLog({ role: 'test', level: 'silent' });
  const config = gatewayConfig({ TABERN_PORT: new URL(gateway.url).port });
  const started = startGateway(config, { clients, gatewayToken: 't', log });
  const code = await started.then(
    () => 'started',
    (error: NodeJS.ErrnoException) => error.code,
  );
  assert.is(code, 'EADDRINUSE');
});

test.run();
