/** Connections of a revoked API key are closed, and others are not. */
import { once } from 'node:events';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocket, WebSocketServer } from 'ws';
import { openLog } from '../../../../proto/common/log.ts';
import type { CallOptions } from '../../../../proto/rpc/local.ts';
import type { Clients } from '../../../../proto/rpc/services.ts';
import { followNotifications } from '../../../../runner/sessions/server/notifications.ts';
import {
  openSessionServer,
  type RegisteredSession,
} from '../../../../runner/sessions/server/session-server.ts';
import { BROWSERS } from '../../../support/runner/browsers.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('runner/sessions/server/revocations');
const log = openLog({ role: 'test', level: 'silent' });

async function open() {
  await using cleanup = new AsyncDisposableStack();
  const dir = cleanup.use(tempDirectory());
  const path = join(dir.path, 'server.sock');
  const server = cleanup.use(await openSessionServer({ where: path, log }));
  const sockets = new WebSocketServer({ noServer: true });
  const serve: RegisteredSession['relay']['serve'] = (request, socket, head) =>
    sockets.handleUpgrade(request, socket, head, (one) => one.on('message', (m) => one.send(m)));
  cleanup.use(
    server.register('key', {
      relay: { serve, clients: 0, revoke: () => undefined },
      chrome: {} as RegisteredSession['chrome'],
    }),
  );
  const kept = cleanup.move();
  return {
    server,
    connect(apiKeyId?: string) {
      const query = apiKeyId === undefined ? '' : `&apiKeyId=${apiKeyId}`;
      return new WebSocket(`ws+unix:${path}:/connect?signingKey=key${query}`);
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

test('a revoked key closes its connections with 1008 and opens none', async () => {
  await using scene = await open();
  const [theirs, own, none] = [scene.connect('a'), scene.connect('b'), scene.connect()];
  await Promise.all([theirs, own, none].map((one) => once(one, 'open')));
  const closed = once(theirs, 'close');
  scene.server.revoke(['a', 'unknown']);
  const [code, reason] = await closed;
  assert.equal([code, String(reason)], [1008, 'the API key was revoked']);
  for (const one of [own, none]) {
    one.send('still here');
    assert.is(String((await once(one, 'message'))[0]), 'still here');
  }
  const refused = scene.connect('a');
  const [, response] = await once(refused, 'unexpected-response');
  assert.is(response.statusCode, 401);
  refused.on('error', () => undefined).terminate();
  for (const one of [own, none]) one.terminate();
});

test('a client that does not close is disconnected', async () => {
  await using scene = await open();
  const client = scene.connect('a');
  await once(client, 'open');
  client.pause();
  const cut = once(client, 'close');
  scene.server.revoke(['a']);
  setImmediate(() => client.resume());
  await cut;
});

async function never(signal: AbortSignal | undefined): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  signal?.addEventListener('abort', () => reject(signal.reason));
  return await promise;
}

test('reported keys are revoked, and named in the next poll', async () => {
  const asked: string[][] = [];
  const revoked: string[][] = [];
  const over = new AbortController();
  const answers = [['a'], ['a', 'b'], []];
  const runners = {
    async awaitRevocations({ knownKeyIds }: { knownKeyIds: string[] }) {
      asked.push(knownKeyIds);
      if (asked.length === answers.length) over.abort();
      return { keyIds: answers[asked.length - 1] ?? [] };
    },
    awaitHandoffs: async (_: unknown, { signal }: CallOptions) => await never(signal),
    async awaitReleases(_: unknown, { signal }: CallOptions) {
      return await never(signal);
    },
  } as unknown as Clients['runners'];
  await followNotifications({
    clients: { runners },
    call: {},
    log,
    signal: over.signal,
    runner: { runnerId: 'r', instanceId: 'i' },
    leases: { release: () => undefined },
    handoffs: BROWSERS.handoffs,
    server: { revoke: (keyIds) => void revoked.push([...keyIds]) },
  });
  assert.equal(asked, [[], ['a'], ['a', 'b']]);
  assert.equal(revoked, answers);
});

test.run();
