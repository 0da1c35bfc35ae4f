/** Who comes with the key of a session that is expected waits; any other is refused at once. */
import { once } from 'node:events';
import { get } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Keyed, openKeyed } from '../../../../runner/sessions/server/keyed-server.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('runner/sessions/server/keyed-server');

type Scene = AsyncDisposable & { keyed: Keyed<string>; come(key: string): Promise<string> };

async function open(): Promise<Scene> {
  await using cleanup = new AsyncDisposableStack();
  const dir = cleanup.use(tempDirectory());
  const path = join(dir.path, 'door.sock');
  const keyed = cleanup.use(
    await openKeyed<string>(path, {
      upgrade: (admitted, { socket }) => void socket.end(`welcome to ${admitted}`),
      answer: () => false,
      stranger: { statusCode: 410, message: 'gone' },
    }),
  );
  const kept = cleanup.move();
  return {
    keyed,
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

test('an expected session is waited for until it is admitted', async () => {
  await using scene = await open();
  const expected = scene.keyed.expect('a');
  const coming = scene.come('a');
  assert.is(await scene.come('b'), 'HTTP/1.1 410 Gone'); // later, and answered before
  scene.keyed.admit('a', 'a');
  assert.is(await coming, 'welcome to a');
  assert.is(await scene.come('a'), 'welcome to a');
  expected[Symbol.dispose]();
  assert.is(await scene.come('a'), 'welcome to a');
});

test('the version is what the browser says, and its address comes in any case', async () => {
  await using dir = tempDirectory();
  const socketPath = join(dir.path, 'door.sock');
  await using keyed = await openKeyed<Record<string, string> | Error>(socketPath, {
    upgrade: (_, { socket }) => void socket.end(),
    answer: () => false,
    async version(admitted) {
      if (admitted instanceof Error) throw admitted;
      return admitted;
    },
    stranger: { statusCode: 410, message: 'gone' },
  });
  using _well = keyed.admit('well', { Browser: 'Chrome/1.2', 'User-Agent': 'Mozilla' });
  using _ending = keyed.admit('ending', new Error('the browser has ended'));
  const told = async (key: string, slash = '') => {
    const path = `/json/version${slash}?signingKey=${key}`;
    const headers = { host: 'door' };
    const [response] = await once(get({ socketPath, path, headers, agent: false }), 'response');
    return { status: response.statusCode, ...((await json(response)) as object) };
  };
  const well = { status: 200, Browser: 'Chrome/1.2', 'User-Agent': 'Mozilla' };
  assert.equal(await told('well', '/'), {
    ...well,
    webSocketDebuggerUrl: 'ws://door/?signingKey=well',
  });
  assert.equal(await told('ending'), {
    status: 200,
    Browser: 'Chrome',
    'Protocol-Version': '1.3',
    webSocketDebuggerUrl: 'ws://door/?signingKey=ending',
  });
  assert.is((await told('stranger')).status, 410);
});

test('one that never comes is refused when it is expected no more', async () => {
  await using scene = await open();
  const expected = scene.keyed.expect('a');
  const coming = scene.come('a');
  assert.is(await scene.come('b'), 'HTTP/1.1 410 Gone');
  expected[Symbol.dispose]();
  assert.is(await coming, 'HTTP/1.1 410 Gone');
});

test.run();
