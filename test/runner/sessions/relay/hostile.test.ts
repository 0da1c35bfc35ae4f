/**
 * Clients that send invalid frames and messages: each closes at most its own connection, with the
 * code of RFC 6455 7.4.1, and does not affect another client of the same session.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Lab, openLab, until } from '../../browser/lab.ts';
import { openRaw } from './raw.ts';

const hostile = suite('runner/sessions/relay/hostile');
const TEXT = 0x81;
const PING = 0x89;
const COMMAND = '{"id":1,"method":"Browser.getVersion"}';

/** One frame, masked as a client's are unless told. */
function frame(first: number, payload: Buffer | string, isMasked = true): Buffer {
  const bytes = Buffer.from(payload);
  const mask = isMasked ? randomBytes(4) : Buffer.alloc(0);
  const bit = isMasked ? 0x80 : 0;
  const head = Buffer.alloc(bytes.length < 126 ? 2 : 4);
  head[0] = first;
  head[1] = bit | (bytes.length < 126 ? bytes.length : 126);
  if (bytes.length >= 126) head.writeUInt16BE(bytes.length, 2);
  if (isMasked) for (const [at, byte] of bytes.entries()) bytes[at] = byte ^ (mask[at % 4] ?? 0);
  return Buffer.concat([head, mask, bytes]);
}

/** A whole upgrade, by hand. */
async function upgraded(lab: Lab): Promise<Socket> {
  const { port } = new URL(lab.connectUrl);
  const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true });
  const handshake = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
  const key = `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`;
  socket.on('error', () => socket.destroy()); // a flood is reset
  socket.write(['GET / HTTP/1.1', 'Host: x', ...handshake, key, '', ''].join('\r\n'));
  const [answer] = await once(socket, 'data');
  assert.match(String(answer), /^HTTP\/1\.1 101 /);
  return socket;
}

/** The code and reason of the close frame that comes after these bytes. */
async function closeOf(socket: Socket): Promise<string> {
  const parts: Buffer[] = [];
  socket.on('data', (bytes) => parts.push(bytes));
  await once(socket, 'end');
  socket.destroy();
  const all = Buffer.concat(parts);
  const at = all.lastIndexOf(0x88);
  if (at < 0) return 'nothing';
  const length = (all[at + 1] ?? 0) & 0x7f;
  return `${all.readUInt16BE(at + 2)} ${all.subarray(at + 4, at + 2 + length)}`.trim();
}

const BROKEN: [string, Buffer, number][] = [
  ['an unmasked frame', frame(TEXT, COMMAND, false), 1002],
  ['a reserved bit', frame(TEXT | 0x40, COMMAND), 1002],
  ['an unknown opcode', frame(0x83, COMMAND), 1002],
  ['a continuation of nothing', frame(0x80, COMMAND), 1002],
  ['a ping in two parts', frame(0x09, 'a'), 1002],
  ['a ping of 126 bytes', frame(PING, 'x'.repeat(126)), 1002],
  ['text that is no UTF-8', frame(TEXT, Buffer.from([0x22, 0xff, 0xfe, 0x22])), 1007],
  ['a length of 2^63', Buffer.from('81ff7fffffffffffffff00000000', 'hex'), 1009],
];

hostile('a broken frame closes its connection with its code', async () => {
  await using lab = await openLab({ allow: [] });
  const good = await openRaw(lab.connectUrl);
  for (const [name, bytes, code] of BROKEN) {
    const socket = await upgraded(lab);
    socket.write(bytes);
    assert.is(Number.parseInt(await closeOf(socket), 10), code, name);
    await good.call('Browser.getVersion');
  }
  await until(() => lab.relay.clients === 1, 'the good one is left');
  good.socket.close();
  await good.closed;
});

hostile('a command in one-byte frames works; a flood of pings ends its sender', async () => {
  await using lab = await openLab({ allow: [] });
  const good = await openRaw(lab.connectUrl);
  const socket = await upgraded(lab);
  const bytes = Buffer.from(COMMAND);
  const parts = [...bytes].map((byte, at) => {
    const first = (at === 0 ? 0x01 : 0x00) | (at === bytes.length - 1 ? 0x80 : 0);
    return frame(first, Buffer.of(byte));
  });
  socket.write(Buffer.concat(parts));
  const [answer] = await once(socket, 'data');
  assert.match(String(answer), /"product"/);
  socket.resume();
  // more than ws keeps pongs for: it ends the connection
  socket.write(Buffer.concat(Array.from({ length: 10_000 }, () => frame(PING, 'x'))));
  await good.call('Browser.getVersion');
  await until(() => lab.relay.clients === 1, 'the flood is over');
  good.socket.close();
  await good.closed;
});

hostile('a peer that closes its half gets the reason', async () => {
  await using lab = await openLab({ allow: [] });
  const socket = await upgraded(lab);
  socket.end();
  assert.is(await closeOf(socket), '1001 the gateway is ending');
  await until(() => lab.relay.clients === 0, 'it has left');
});

/** `String` throws for both. */
const NO_TEXT = ['{"toString":null}', `${'['.repeat(250)}${']'.repeat(250)}`];

hostile('a parameter of another type ends no client but its own', async () => {
  await using lab = await openLab({ allow: [] });
  const good = await openRaw(lab.connectUrl);
  const other = await openRaw(lab.connectUrl);
  for (const [method, name] of [
    ['Page.navigate', 'url'],
    ['Target.detachFromTarget', 'sessionId'],
    ['Target.activateTarget', 'targetId'],
    ['Target.createBrowserContext', 'proxyBypassList'],
    ['Target.createBrowserContext', 'proxyServer'],
  ]) {
    for (const value of NO_TEXT) {
      const answered = once(other.socket, 'message');
      other.socket.send(`{"id":77,"method":"${method}","params":{"${name}":${value}}}`);
      assert.match(String(await answered), '{"id":77,', `${method} ${value.slice(0, 20)}`);
      await good.call('Browser.getVersion');
    }
  }
  for (const client of [good, other]) {
    client.socket.close();
    await client.closed;
  }
});

hostile('the 33rd connection is refused with the fix; a disconnect frees a place', async () => {
  await using lab = await openLab({ allow: [] });
  const all = await Promise.all(Array.from({ length: 32 }, () => upgraded(lab)));
  const { port } = new URL(lab.connectUrl);
  const late = connect({ port: Number(port), host: '127.0.0.1' });
  late.write(
    'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  );
  let text = '';
  for await (const part of late) text += part;
  assert.match(text, /^HTTP\/1\.1 429 /);
  assert.match(text, /32 connections, its most\. Close one, then try again\./);
  all[0]?.destroy();
  await until(() => lab.relay.clients === 31, 'one has left');
  all.push(await upgraded(lab));
  for (const socket of all) socket.destroy();
});

hostile('commands of a client that is being closed are ignored', async () => {
  await using lab = await openLab({ allow: [] });
  const socket = await upgraded(lab);
  const told = once(socket, 'data');
  lab.relay.close(1000, 'over');
  await told; // the client has the close frame, and does not respond to it
  const params = { url: 'about:blank' };
  socket.write(frame(TEXT, JSON.stringify({ id: 1, method: 'Target.createTarget', params })));
  await until(() => lab.relay.clients === 0, 'it was disconnected'); // cut, since it did not go
  const { targetInfos } = await lab.chrome.pipe.call('Target.getTargets');
  assert.is((targetInfos as { type: string }[]).filter(({ type }) => type === 'page').length, 1);
});

hostile.run();
