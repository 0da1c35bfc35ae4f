/** Who comes with the key of a session that is expected waits; any other is refused at once. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Keyed, openKeyed } from '../../runner/keyed.ts';
import { tempDirectory } from '../support/temp.ts';

const test = suite('runner/keyed');

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

test('one that never comes is refused when it is expected no more', async () => {
  await using scene = await open();
  const expected = scene.keyed.expect('a');
  const coming = scene.come('a');
  assert.is(await scene.come('b'), 'HTTP/1.1 410 Gone');
  expected[Symbol.dispose]();
  assert.is(await coming, 'HTTP/1.1 410 Gone');
});

test.run();
