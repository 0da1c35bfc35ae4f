/** Tokens of resumable connections, and the memory that all of a session share. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocket, WebSocketServer } from 'ws';
import type { Connection } from '../../../../runner/sessions/relay/connection.ts';
import { openResumption, type Refusal } from '../../../../runner/sessions/relay/resumption.ts';
import { until } from '../../../support/poll.ts';
import { log } from '../../browser/lab.ts';

const test = suite('runner/sessions/relay/resumption');
const LONG_MS = 1_000_000;
const MIB = 1 << 20;
const OWNER = { keyId: 'key', targetId: undefined };
const MESSAGE = Buffer.alloc(MIB, 'x');

type Scene = { resumeMs?: number; stallMs?: number };

async function open(times: Scene = {}) {
  const paused = new Set<object>();
  const pipe = {
    pause: (owner: object) => void paused.add(owner),
    resume: (owner: object) => void paused.delete(owner),
  };
  const changes: boolean[] = [];
  const resumption = openResumption({
    pipe,
    log,
    resumeMs: LONG_MS,
    ...times,
    onChange: (isConnected) => void changes.push(isConnected),
  });
  const sockets = new WebSocketServer({ noServer: true });
  const server = createServer();
  const arrived: { socket: WebSocket; wire: Socket }[] = [];
  server.on('upgrade', (request: IncomingMessage, wire: Socket, head: Buffer) => {
    sockets.handleUpgrade(request, wire, head, (socket) => void arrived.push({ socket, wire }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const clients: WebSocket[] = [];
  const connections: Connection[] = [];
  const dial = async () => {
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
    clients.push(client);
    const messages: string[] = [];
    client.on('message', (text) => void messages.push(String(text)));
    const closed = once(client, 'close').then(([code, reason]) => `${code} ${reason}`);
    await once(client, 'open');
    const wire = await until(() => arrived.shift());
    return { client, messages, closed, wire };
  };
  return {
    resumption,
    changes,
    dial,
    isPaused: () => paused.size > 0,
    /** A resumable connection, with its token. */
    async connect(owner: Parameters<typeof resumption.open>[2] = OWNER) {
      const dialled = await dial();
      const token = resumption.newToken();
      const connection = resumption.open(dialled.wire, token, owner);
      connections.push(connection);
      connection.onMessage((text) => void connection.takes?.(text));
      return { ...dialled, token, connection };
    },
    [Symbol.dispose]() {
      for (const connection of connections) connection.close(1000, 'the test is over');
      for (const client of clients) client.terminate();
      server.close();
    },
  };
}

type Connected = { client: WebSocket; connection: Connection };

async function breakOff({ client, connection }: Connected): Promise<void> {
  client.terminate();
  await until(() => !connection.isConnected);
}

test('a token is random, and of one session, key and target', async () => {
  using scene = await open();
  const { resumption, connect, dial } = scene;
  const one = await connect();
  const another = await connect({ keyId: 'key', targetId: 'A' });
  assert.is.not(one.token, another.token);
  assert.is(Buffer.from(one.token, 'base64url').length, 24);
  await breakOff(one);
  const { wire } = await dial();
  const none: Refusal = { code: 4404, reason: 'no such resume token' };
  const refused = (token: string, owner: object): void => {
    const given = { ...OWNER, ...owner };
    assert.equal(resumption.resume(wire, { token, received: 0 }, given), none);
  };
  refused(`${one.token}x`, {});
  refused(one.token.slice(1), {});
  refused('', {});
  refused(one.token, { keyId: 'other' });
  refused(one.token, { targetId: 'A' });
  refused(another.token, {});
  using elsewhere = await open();
  assert.equal(
    elsewhere.resumption.resume(wire, { token: one.token, received: 0 }, OWNER),
    none,
    'another session',
  );
  const numbers = { code: 4400, reason: 'no such number of received messages' };
  for (const received of [1, Number.NaN]) {
    assert.equal(resumption.resume(wire, { token: one.token, received }, OWNER), numbers);
  }
  assert.is(resumption.resume(wire, { token: one.token, received: 0 }, OWNER), undefined);
  assert.equal(scene.changes, [false, true]);
});

test('an ended connection is refused with the reason of its end', async () => {
  using scene = await open({ resumeMs: 20 });
  const late = await scene.connect();
  await breakOff(late);
  await late.connection.closed;
  const left = await scene.connect();
  left.client.close(1000);
  await left.connection.closed;
  const closed = await scene.connect();
  closed.connection.close(1000, 'the session was released');
  const { wire } = await scene.dial();
  const expected = [
    [late, 'the time to resume has passed'],
    [left, 'the client has left'],
    [closed, 'the session was released'],
  ] as const;
  for (const [{ token }, reason] of expected) {
    const refusal = scene.resumption.resume(wire, { token, received: 0 }, OWNER);
    assert.equal(refusal, { code: 4410, reason });
  }
  assert.is(await closed.closed, '1000 the session was released');
});

test('a held connection keeps 16 MiB; then it ends, and no other one pauses', async () => {
  using scene = await open();
  const [held, smaller, connected] = [
    await scene.connect(),
    await scene.connect(),
    await scene.connect(),
  ];
  await breakOff(held);
  await breakOff(smaller);
  smaller.connection.send(MESSAGE);
  for (let count = 0; count < 14; count += 1) held.connection.send(MESSAGE);
  assert.ok(held.connection.isOpen);
  connected.connection.send(MESSAGE); // all share the 16 MiB
  assert.not.ok(held.connection.isOpen, 'it keeps most');
  assert.ok(smaller.connection.isOpen);
  assert.ok(connected.connection.isOpen);
  assert.not.ok(scene.isPaused());
  const { wire } = await scene.dial();
  const reason = 'more than 16 MiB of messages were kept';
  const { token } = held;
  const refusal = scene.resumption.resume(wire, { token, received: 0 }, OWNER);
  assert.equal(refusal, { code: 4410, reason });
  assert.is((await held.connection.closed).isBroken, false);
});

test('a client that acknowledges nothing pauses Chrome for a time, and is closed', async () => {
  using scene = await open({ stallMs: 300 });
  const silent = await scene.connect();
  const other = await scene.connect();
  for (let count = 0; count < 16; count += 1) silent.connection.send(MESSAGE);
  assert.ok(scene.isPaused());
  other.connection.send(Buffer.from('{}'));
  await silent.closed;
  const { token, wire } = silent;
  const refusal = scene.resumption.resume(wire, { token, received: 0 }, OWNER);
  assert.equal(refusal, { code: 4410, reason: 'the client acknowledges no messages' });
  await until(() => !scene.isPaused());
  assert.ok(other.connection.isOpen);
});

test('Chrome is read again when a client has acknowledged', async () => {
  using scene = await open();
  const { client, connection, messages } = await scene.connect();
  for (let count = 0; count < 16; count += 1) connection.send(MESSAGE);
  assert.ok(scene.isPaused());
  await until(() => messages.length === 17);
  client.send('{"method":"Tabern.received","params":{"received":13}}');
  await until(() => !scene.isPaused());
  assert.ok(connection.isOpen);
});

test('answers of the relay itself do not grow without a bound', async () => {
  using scene = await open();
  const { connection, token, wire } = await scene.connect();
  for (let count = 0; count < 64 && connection.isOpen; count += 1) connection.send(MESSAGE);
  const refusal = scene.resumption.resume(wire, { token, received: 0 }, OWNER);
  assert.equal(refusal, { code: 4410, reason: 'the client acknowledges no messages' });
  await until(() => !scene.isPaused());
  const long = await scene.connect();
  long.connection.send(Buffer.alloc(40 * MIB, 'x'));
  assert.ok(long.connection.isOpen, 'a message of Chrome may be longer');
});

test('revoked keys end their connections, whether they are held or not', async () => {
  using scene = await open();
  const [held, connected, other] = [
    await scene.connect(),
    await scene.connect(),
    await scene.connect({ keyId: 'other', targetId: undefined }),
  ];
  await breakOff(held);
  scene.resumption.revoke(['key']);
  await held.connection.closed;
  await breakOff(connected); // as the server of the sockets does
  await connected.connection.closed;
  assert.ok(other.connection.isOpen);
  assert.equal(scene.changes, [false]);
});

test('the connection that is held for the longest time makes room', async () => {
  using scene = await open();
  const [one, two] = [await scene.connect(), await scene.connect()];
  assert.not.ok(scene.resumption.makeRoom());
  await breakOff(two);
  await breakOff(one);
  assert.ok(scene.resumption.makeRoom());
  assert.ok(one.connection.isOpen);
  assert.not.ok(two.connection.isOpen);
});

test('a gateway that ends closes with 1012, and the connection is held', async () => {
  using scene = await open();
  const { client, closed, connection, wire } = await scene.connect();
  // as a gateway forwards it: its half is closed, and nothing is read from the client any more
  const raw = (client as unknown as { _socket: Socket })._socket;
  raw.end();
  assert.is(await closed, '1012 the gateway is ending: resume');
  await until(() => !connection.isConnected);
  assert.ok(connection.isOpen);
  assert.ok(wire.wire.destroyed || wire.wire.writableEnded);
});

test.run();
