/**
 * The CDP broker: a signing key of a session of this host opens that session's relay, nothing else
 * opens anything.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Broker, openBroker } from '../../../runner/functions/host-sockets.ts';
import type { UpgradeHandler } from '../../../runner/sessions/server/key-authenticated-server.ts';

const test = suite('runner/functions/host-sockets');
type Scene = AsyncDisposable & { broker: Broker; socketPath: string };

async function open(): Promise<Scene> {
  const dir = await mkdtemp(join(tmpdir(), 'broker-'));
  const socketPath = join(dir, 'cdp.sock');
  const broker = await openBroker(socketPath);
  return {
    broker,
    socketPath,
    async [Symbol.asyncDispose]() {
      await broker[Symbol.asyncDispose]();
      await rm(dir, { recursive: true });
    },
  };
}

function relay(name: string, served: string[]): UpgradeHandler {
  return {
    serve(_request, socket) {
      served.push(name);
      socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n');
    },
  };
}

/** The status line of an upgrade request. */
async function upgrade(socketPath: string, path: string): Promise<string> {
  const socket = connect(socketPath);
  const head = 'Host: 127.0.0.1:9222\r\nConnection: Upgrade\r\nUpgrade: websocket';
  socket.write(`GET ${path} HTTP/1.1\r\n${head}\r\n\r\n`);
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return bytes.toString().split('\r\n')[0] ?? '';
}

async function get(socketPath: string, path: string, method = 'GET') {
  const call = request({ socketPath, path, method, headers: { host: '127.0.0.1:9222' } }).end();
  const [response] = await once(call, 'response');
  let body = '';
  for await (const part of response) body += part;
  return { status: response.statusCode as number, body };
}

test('a signing key opens the relay of its own session only', async () => {
  await using scene = await open();
  const served: string[] = [];
  scene.broker.register('key-a', relay('a', served));
  scene.broker.register('key-b', relay('b', served));
  assert.match(await upgrade(scene.socketPath, '/?signingKey=key-b'), / 101 /);
  assert.match(await upgrade(scene.socketPath, '/devtools/browser/x?signingKey=key-a'), / 101 /);
  assert.equal(served, ['b', 'a']);
});

test('a missing key, a wrong key and the key of an ended session are refused', async () => {
  await using scene = await open();
  const served: string[] = [];
  const ended = scene.broker.register('key-a', relay('a', served));
  for (const path of ['/', '/?signingKey=', '/?signingKey=key', '/?signingKey=key-a%00', '//']) {
    assert.match(await upgrade(scene.socketPath, path), / 401 /, path);
  }
  ended[Symbol.dispose]();
  assert.match(await upgrade(scene.socketPath, '/?signingKey=key-a'), / 401 /);
  assert.equal(served, []);
});

test('/json/version returns the WebSocket address to a request with the key', async () => {
  await using scene = await open();
  scene.broker.register('key-a', relay('a', []));
  const { status, body } = await get(scene.socketPath, '/json/version/?signingKey=key-a');
  assert.is(status, 200);
  const { webSocketDebuggerUrl } = JSON.parse(body);
  assert.is(webSocketDebuggerUrl, 'ws://127.0.0.1:9222/?signingKey=key-a');
  assert.is((await get(scene.socketPath, '/json/version')).status, 401);
  assert.is((await get(scene.socketPath, '/json/version?signingKey=other')).status, 401);
});

test('other paths and methods return 404 with a key and 401 without', async () => {
  await using scene = await open();
  scene.broker.register('key-a', relay('a', []));
  for (const path of [
    '/json?signingKey=key-a',
    '/json/new?signingKey=key-a',
    '/?signingKey=key-a',
  ]) {
    assert.is((await get(scene.socketPath, path)).status, 404, path);
  }
  assert.is((await get(scene.socketPath, '/json/new')).status, 401);
  assert.is((await get(scene.socketPath, '/json/version?signingKey=key-a', 'PUT')).status, 404);
});

test.run();
