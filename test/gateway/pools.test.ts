/**
 * Pools that all projects share, with a gateway and a whole core: one project uses all that
 * it can, and a second project must not be delayed.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { uploadSlots } from '../../gateway/routes/files/upload-limits.ts';
import { must } from '../../proto/common/must.ts';
import type { Fault } from '../../proto/rpc/errors.ts';
import { KEY } from '../core/boot.ts';
import { until } from '../support/poll.ts';
import { openUploads } from './routes/files/contexts.ts';
import { ask, openGateway, raw } from './sessions/runner.ts';

const test = suite('gateway/pools');

const MIB = 1024 * 1024;
/** In milliseconds, of one request of the second project, on a machine that is busy. */
const BOUND_MS = 10_000;

/** Two projects: the flood has KEY, and a second project has a key of its own. */
async function openTwo() {
  const app = await openUploads();
  const { operators } = app.clients;
  await operators.createProject({ name: 'second', limits: {} }, app.asOperator);
  const wanted = { project: 'second', name: '' };
  const { key } = await operators.createApiKey(wanted, app.asOperator);
  const sockets: Socket[] = [];
  return {
    ...app,
    second: must(key, 'a key'),
    /** A raw connection of the flood. */
    async flood(bytes: string | Buffer): Promise<Socket> {
      const { hostname, port } = new URL(app.gateway.url);
      const socket = connect(Number(port), hostname);
      sockets.push(socket.on('error', () => undefined));
      await once(socket, 'connect');
      socket.write(bytes);
      return socket;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await app[Symbol.asyncDispose]();
    },
  };
}

/** A context of the second project, made by a request with a body of this size. */
async function createContext(
  { gateway, second }: Awaited<ReturnType<typeof openTwo>>,
  bodyBytes: number,
) {
  const startedAt = performance.now();
  const headers = { 'x-svc-api-key': second, 'content-type': 'application/json' };
  const body = '{}'.padEnd(bodyBytes);
  const answer = await ask(gateway.url, 'POST', '/v1/contexts', { headers, body });
  return { ...answer, ms: performance.now() - startedAt };
}

test('slow bodies of one project leave room for the bodies of another', async () => {
  await using app = await openTwo();
  const size = MIB - 1;
  const head = `POST /v1/contexts HTTP/1.1\r\nhost: x\r\nx-svc-api-key: ${KEY}\r\n`;
  const json = `content-type: application/json\r\ncontent-length: ${size}\r\n\r\n`;
  let refused = 0;
  for (let body = 0; body < 160; body += 1) {
    const socket = await app.flood(head + json);
    socket.once('data', () => (refused += 1));
    socket.write(Buffer.alloc(size - 1, ' '));
  }
  await until(() => refused >= 30); // The flood holds all that it can get.
  const { status, text, ms } = await createContext(app, size);
  assert.is(status, 201, text);
  assert.ok(ms < BOUND_MS, `${Math.round(ms)} ms`);
});

test('large bodies of one project leave half of the thread for another', async () => {
  await using app = await openTwo();
  const body = `{"x":[${'1,'.repeat(200_000)}1]}`;
  const head = `POST /v1/screenshot HTTP/1.1\r\nhost: x\r\nx-svc-api-key: ${KEY}\r\n`;
  const json = `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  const flood = 40;
  let [answered, last] = [0, ''];
  for (let one = 0; one < flood; one += 1) {
    const socket = await app.flood(head + json + body);
    socket.once('data', (bytes: Buffer) => {
      answered += 1;
      last = String(bytes);
    });
  }
  await until(() => answered > 0);
  const headers = { 'x-svc-api-key': app.second };
  const { status, text } = await ask(app.gateway.url, 'GET', '/v1/projects', { headers });
  assert.is(status, 200, text);
  assert.ok(answered < flood / 2, `${answered} of the flood were answered before`);
  await until(() => answered === flood);
  assert.match(last, /^HTTP\/1.1 400 /, last);
});

test('creates of contexts of one project leave keys for another', async () => {
  await using app = await openTwo();
  const request = `POST /v1/contexts HTTP/1.1\r\nhost: x\r\nx-svc-api-key: ${KEY}\r\n\r\n`;
  let isRefused = false;
  for (let create = 0; create < 260; create += 1) {
    const socket = await app.flood(request.replace('\r\n\r\n', '\r\ncontent-length: 0\r\n\r\n'));
    socket.on('data', (bytes: Buffer) => (isRefused ||= bytes.includes(' 503 ')));
  }
  await until(() => isRefused); // More creates wait than the flood's share.
  const { status, text, ms } = await createContext(app, 2);
  assert.is(status, 201, text);
  assert.ok(ms < BOUND_MS, `${Math.round(ms)} ms`);
});

test('uploads of many keys leave a slot for the next key', () => {
  const enter = uploadSlots();
  const as = (key: string) => ({ metadata: { 'x-svc-api-key': key } });
  const held: Disposable[] = [];
  for (let key = 0; key < 8; key += 1) {
    for (let upload = 0; upload < 8; upload += 1) {
      try {
        held.push(enter(as(`flood ${key}`)));
      } catch (error) {
        assert.is((error as Fault).reason, 'CONCURRENCY_LIMIT');
      }
    }
  }
  held.push(enter(as('second')));
  for (const one of held) one[Symbol.dispose]();
  for (let upload = 0; upload < 8; upload += 1) enter(as('flood 0'));
});

test('idle connections of one address leave connections for others', async () => {
  await using gateway = await openGateway({}, undefined, { connectionsMax: 16 });
  const { hostname, port } = new URL(gateway.url);
  const closed: unknown[] = [];
  const from = (localAddress: string) =>
    connect({ host: hostname, port: Number(port), localAddress });
  const sockets = Array.from({ length: 32 }, () => from('127.0.0.1'));
  for (const socket of sockets) {
    socket.on('error', () => undefined);
    socket.once('close', () => closed.push(socket));
    socket.resume();
  }
  await until(() => closed.length >= 16); // The flood holds all that it can get.
  const second = from('127.0.0.2');
  second.end('GET /openapi.json HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  const answer = await text(second).catch((error: unknown) => String(error));
  assert.match(answer, /^HTTP\/1\.1 200 /);
  for (const socket of sockets) socket.destroy();
  const again = () =>
    raw(gateway.url, 'GET /docs HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  await until(async () => (await again().catch(() => '')).startsWith('HTTP/1.1 '));
});

test.run();
