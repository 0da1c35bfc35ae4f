/** What goes to a client: in order, at once, and news of requests together. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocket, WebSocketServer } from 'ws';
import { openOutbox } from '../../../runner/chrome/outbox.ts';
import { until } from '../../support/poll.ts';
import { log } from './lab.ts';

const outbox = suite('runner/chrome/outbox');

const event = (method: string, number = 0): Buffer =>
  Buffer.from(JSON.stringify({ method, params: { number } }));
const NEWS = event('Network.dataReceived');

/** An outbox, the socket that it writes to, and what its client has heard. */
async function openLab() {
  const server = createServer();
  const sockets = new WebSocketServer({ noServer: true });
  const taken = Promise.withResolvers<{ socket: WebSocket; wire: Socket }>();
  server.on('upgrade', (request: IncomingMessage, wire: Socket, head: Buffer) => {
    sockets.handleUpgrade(request, wire, head, (socket) => taken.resolve({ socket, wire }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const heard: string[] = [];
  client.on('message', (message) => void heard.push(String(message)));
  const [{ socket, wire }] = await Promise.all([taken.promise, once(client, 'open')]);
  const pipe = { pause: () => undefined, resume: () => undefined } as never;
  const box = openOutbox({ socket, wire, pipe, log });
  return {
    ...{ box, socket, wire, heard },
    [Symbol.dispose]() {
      box[Symbol.dispose]();
      client.terminate();
      server.close();
    },
  };
}

outbox('news of requests wait for each other, for a moment, and leave in one write', async () => {
  using lab = await openLab();
  const { box, wire, heard } = lab;
  const before = wire.bytesWritten;
  for (let number = 0; number < 5; number += 1) {
    box.send(event('Network.responseReceived', number));
    await new Promise(process.nextTick);
    assert.is(wire.bytesWritten, before, 'nothing has left yet');
  }
  let writes = 0;
  const write = wire.write.bind(wire);
  wire.write = ((...words: Parameters<typeof write>) => {
    writes += 1;
    return write(...words);
  }) as typeof wire.write;
  await until(() => heard.length === 5);
  assert.is(writes, 1);
  assert.equal(
    heard.map((text) => JSON.parse(text).params.number),
    [0, 1, 2, 3, 4],
  );
});

outbox('anything else leaves at once, behind the news that wait', async () => {
  for (const other of [
    Buffer.from('{"id":1,"result":{}}'),
    event('Page.loadEventFired'),
    event('Network.requestIntercepted'), // its request waits for an answer
  ]) {
    using lab = await openLab();
    const { box, wire, heard } = lab;
    const before = wire.bytesWritten;
    box.send(NEWS);
    box.send(other);
    box.send(NEWS);
    await new Promise(process.nextTick);
    assert.ok(wire.bytesWritten >= before + 2 * NEWS.length + other.length, String(other));
    await until(() => heard.length === 3);
    assert.equal(heard, [String(NEWS), String(other), String(NEWS)]);
  }
});

outbox(
  'a long message leaves behind the news that wait; who has left is written nothing',
  async () => {
    using lab = await openLab();
    const { box, wire, heard } = lab;
    const long = Buffer.from(`{"id":1,"result":"${'x'.repeat(20_000)}"}`);
    box.send(NEWS);
    box.send(long);
    await until(() => heard.length === 2);
    assert.equal(heard, [String(NEWS), String(long)]);
    box.send(NEWS);
    box[Symbol.dispose]();
    const after = wire.bytesWritten;
    await until(() => !process.getActiveResourcesInfo().includes('Timeout'));
    assert.is(wire.bytesWritten, after);
  },
);

outbox('who closes the socket takes along what waits; later nothing is written', async () => {
  using lab = await openLab();
  const { box, socket, wire, heard } = lab;
  box.send(NEWS);
  box.flush();
  socket.close(1000, 'over');
  const after = wire.bytesWritten;
  box.send(NEWS);
  box.flush();
  assert.is(wire.bytesWritten, after);
  await until(() => heard.length === 1);
});

outbox.run();
