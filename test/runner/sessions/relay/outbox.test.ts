/** Messages to a client: in order, and those of one turn in one write. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocket, WebSocketServer } from 'ws';
import { openPauses } from '../../../../runner/browser/cdp/pauses.ts';
import { openOutbox } from '../../../../runner/sessions/relay/outbox.ts';
import { until } from '../../../support/poll.ts';
import { log } from '../../browser/lab.ts';

const outbox = suite('runner/sessions/relay/outbox');

const event = (number: number): Buffer =>
  Buffer.from(JSON.stringify({ method: 'Network.dataReceived', params: { number } }));
const EVENT = event(0);

/** An outbox, the socket that it writes to, and the messages that its client received. */
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
  const box = openOutbox({ socket, wire, pipe, log, reading: openPauses(socket) });
  return {
    box,
    socket,
    wire,
    heard,
    [Symbol.dispose]() {
      box[Symbol.dispose]();
      client.terminate();
      server.close();
    },
  };
}

outbox('messages of one turn are sent at its end, in one write', async () => {
  using lab = await openLab();
  const { box, wire, heard } = lab;
  let writes = 0;
  const write = wire.write.bind(wire);
  wire.write = ((...words: Parameters<typeof write>) => {
    writes += 1;
    return write(...words);
  }) as typeof wire.write;
  for (let number = 0; number < 5; number += 1) box.send(event(number));
  assert.is(writes, 0);
  await new Promise(process.nextTick);
  assert.is(writes, 1);
  box.send(event(5));
  await until(() => heard.length === 6);
  assert.is(writes, 2);
  assert.equal(
    heard.map((text) => JSON.parse(text).params.number),
    [0, 1, 2, 3, 4, 5],
  );
});

outbox(
  'a long message keeps its place in the order; nothing is written to a closed socket',
  async () => {
    using lab = await openLab();
    const { box, wire, socket, heard } = lab;
    const long = Buffer.from(`{"id":1,"result":"${'x'.repeat(20_000)}"}`);
    box.send(EVENT);
    box.send(long);
    box.send(EVENT);
    await until(() => heard.length === 3);
    assert.equal(heard, [String(EVENT), String(long), String(EVENT)]);
    box.send(EVENT);
    socket.terminate();
    const after = wire.bytesWritten;
    await new Promise(process.nextTick);
    assert.is(wire.bytesWritten, after);
  },
);

outbox('queued messages are sent before a close, and none after it', async () => {
  using lab = await openLab();
  const { box, socket, wire, heard } = lab;
  box.send(EVENT);
  box.flush();
  socket.close(1000, 'over');
  const after = wire.bytesWritten;
  box.send(EVENT);
  box.flush();
  assert.is(wire.bytesWritten, after);
  await until(() => heard.length === 1);
});

outbox('commands of a client that does not read are not read', async () => {
  using lab = await openLab();
  const { box, socket, wire } = lab;
  wire.cork(); // as a client that reads nothing
  const answer = Buffer.alloc(1 << 20, 'x');
  for (let count = 0; count < 17; count += 1) box.send(answer);
  await until(() => socket.isPaused);
  wire.uncork();
  await until(() => !socket.isPaused);
});

outbox.run();
