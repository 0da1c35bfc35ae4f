/** Connections with the key of a reserved session wait; others are refused at once. */
import { once } from 'node:events';
import { get } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type KeyAuthenticatedServer,
  openKeyAuthenticatedServer,
} from '../../../../runner/sessions/server/key-authenticated-server.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('runner/sessions/server/key-authenticated-server');

type Scene = AsyncDisposable & {
  server: KeyAuthenticatedServer<string>;
  come(key: string): Promise<string>;
};

async function open(): Promise<Scene> {
  await using cleanup = new AsyncDisposableStack();
  const dir = cleanup.use(tempDirectory());
  const path = join(dir.path, 'server.sock');
  const server = cleanup.use(
    await openKeyAuthenticatedServer<string>(path, {
      upgrade: (registered, { socket }) => void socket.end(`welcome to ${registered}`),
      answer: () => false,
      unauthorized: { statusCode: 410, message: 'gone' },
    }),
  );
  const kept = cleanup.move();
  return {
    server,
    async come(key) {
      const socket = connect(path);
      const upgrade = 'Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket';
      socket.write(`GET /?signingKey=${key} HTTP/1.1\r\n${upgrade}\r\n\r\n`);
      const [bytes] = await once(socket, 'data');
      socket.destroy();
      return String(bytes).split('\r\n')[0] ?? '';
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

test('a request for a reserved key waits until its session is registered', async () => {
  await using scene = await open();
  const reserved = scene.server.reserve('a');
  const coming = scene.come('a');
  assert.is(await scene.come('b'), 'HTTP/1.1 410 Gone'); // later, and answered before
  scene.server.register('a', 'a');
  assert.is(await coming, 'welcome to a');
  assert.is(await scene.come('a'), 'welcome to a');
  reserved[Symbol.dispose]();
  assert.is(await scene.come('a'), 'welcome to a');
});

test("the version is the browser's, and its address is always there", async () => {
  await using dir = tempDirectory();
  const socketPath = join(dir.path, 'server.sock');
  await using server = await openKeyAuthenticatedServer<Record<string, string> | Error>(
    socketPath,
    {
      upgrade: (_, { socket }) => void socket.end(),
      answer: () => false,
      async version(registered) {
        if (registered instanceof Error) throw registered;
        return registered;
      },
      unauthorized: { statusCode: 410, message: 'gone' },
    },
  );
  using _well = server.register('well', { Browser: 'Chrome/1.2', 'User-Agent': 'Mozilla' });
  using _ending = server.register('ending', new Error('the browser has ended'));
  const told = async (key: string, slash = '') => {
    const path = `/json/version${slash}?signingKey=${key}`;
    const headers = { host: 'host' };
    const [response] = await once(get({ socketPath, path, headers, agent: false }), 'response');
    return { status: response.statusCode, ...((await json(response)) as object) };
  };
  const well = { status: 200, Browser: 'Chrome/1.2', 'User-Agent': 'Mozilla' };
  assert.equal(await told('well', '/'), {
    ...well,
    webSocketDebuggerUrl: 'ws://host/?signingKey=well',
  });
  assert.equal(await told('ending'), {
    status: 200,
    Browser: 'Chrome',
    'Protocol-Version': '1.3',
    webSocketDebuggerUrl: 'ws://host/?signingKey=ending',
  });
  assert.is((await told('stranger')).status, 410);
});

test('the end of a reservation refuses waiting requests', async () => {
  await using scene = await open();
  const reserved = scene.server.reserve('a');
  const coming = scene.come('a');
  assert.is(await scene.come('b'), 'HTTP/1.1 410 Gone');
  reserved[Symbol.dispose]();
  assert.is(await coming, 'HTTP/1.1 410 Gone');
});

test.run();
