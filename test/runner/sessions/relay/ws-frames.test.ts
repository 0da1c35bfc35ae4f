/** Messages as frames: ws reads them, for every kind of length. */

import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { Duplex } from 'node:stream';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocket } from 'ws';
import { framed, frameHead } from '../../../../runner/sessions/relay/ws-frames.ts';
import { until } from '../../../support/poll.ts';
import { listen } from '../../browser/lab.ts';

const frames = suite('runner/sessions/relay/ws-frames');
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const LENGTHS = [0, 1, 125, 126, 127, 65_535, 65_536, 70_000];

frames('a client gets each message unchanged, copied or after its head', async () => {
  const messages = LENGTHS.map((length) => Buffer.alloc(length, 'é'.repeat(3)));
  const texts = messages.map((message) => Buffer.from(message.toString()));
  const server = createServer().on('upgrade', ({ headers }, socket) => {
    serve(socket, String(headers['sec-websocket-key']), texts);
  });
  const client = new WebSocket(`ws://127.0.0.1:${await listen(server)}/`);
  const got: string[] = [];
  client.on('message', (bytes, isBinary) => got.push(`${isBinary} ${bytes}`));
  await until(() => got.length === 2 * texts.length);
  const said = texts.map((text) => `false ${text}`);
  assert.equal(got, [...said, ...said]);
  client.terminate();
  server.close();
});

frames('no messages make no frame', () => {
  assert.is(framed([]).length, 0);
});

/** Accepts the upgrade, then sends all messages twice: framed together, and as head and payload. */
function serve(socket: Duplex, key: string, messages: readonly Buffer[]): void {
  const accept = createHash('sha1')
    .update(key + GUID)
    .digest('base64');
  const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade';
  socket.write(`${upgrade}\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
  socket.write(framed(messages));
  for (const message of messages) {
    socket.write(frameHead(message.length));
    socket.write(message);
  }
}

frames.run();
