/**
 * A WebSocket server for one client on a port of 127.0.0.1 (RFC 6455), for drivers that take
 * an address only. The path of the address is a secret: other users of the machine can reach the
 * port.
 */
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

/** RFC 6455 1.3. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
/** Opcodes: RFC 6455 5.2. A continuation is 0. */
const TEXT = 1;
const CLOSE = 8;
const PING = 9;
const PONG = 10;
const NORMAL = 1000;
/** RFC 6455 5.5: 125 bytes with the code. */
const REASON_MAX_BYTES = 123;

type Events = { onMessage(text: string): void; onClose(): void };
type Frame = { opcode: number; isLast: boolean; payload: Buffer };

export type Port = { url: string; send(text: string): void; close(reason: string): void };

export async function openPort({ onMessage, onClose }: Events): Promise<Port> {
  const path = `/${randomBytes(24).toString('base64url')}`;
  const server = createServer((_request, response) => response.writeHead(404).end());
  let client: Duplex | undefined;
  const write = (opcode: number, payload: Buffer): void => {
    if (client?.writable !== true) return;
    client.cork();
    client.write(headOf(opcode, payload.length));
    client.write(payload);
    client.uncork();
  };
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    const key = request.headers['sec-websocket-key'];
    if (request.url !== path || key === undefined || client !== undefined) {
      socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
      return;
    }
    client = socket;
    server.close();
    const accept = createHash('sha1').update(`${key}${GUID}`).digest('base64');
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n' +
        `sec-websocket-accept: ${accept}\r\n\r\n`,
    );
    const parts: Buffer[] = [];
    const read = reader(({ opcode, isLast, payload }) => {
      if (opcode === PING) write(PONG, payload);
      else if (opcode === CLOSE) {
        write(CLOSE, payload);
        socket.end();
      } else if (opcode <= TEXT) {
        parts.push(payload);
        if (isLast) onMessage(Buffer.concat(parts.splice(0)).toString());
      }
    });
    socket
      .on('data', read)
      .once('close', onClose)
      .once('end', () => socket.end());
    read(head);
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve, reject) => server.once('listening', resolve).once('error', reject));
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    send: (text) => write(TEXT, Buffer.from(text)),
    close(reason) {
      const code = Buffer.alloc(2);
      code.writeUInt16BE(NORMAL);
      const words = Buffer.from(reason).subarray(0, REASON_MAX_BYTES);
      write(CLOSE, Buffer.concat([code, words]));
      client?.end();
      server.close();
    },
  };
}

/** Splits the bytes of a client into frames, whose payloads it has masked. */
function reader(onFrame: (frame: Frame) => void): (bytes: Buffer) => void {
  let chunks: Buffer[] = [];
  let size = 0;
  let wanted = 2;
  return (bytes) => {
    chunks.push(bytes);
    size += bytes.length;
    if (size < wanted) return; // the chunks of a long frame are joined once
    let rest = Buffer.concat(chunks);
    for (;;) {
      wanted = sizeOf(rest);
      if (rest.length < wanted) break;
      onFrame(frameOf(rest.subarray(0, wanted)));
      rest = rest.subarray(wanted);
    }
    chunks = [rest];
    size = rest.length;
  };
}

/** Of the frame at the start, or of as much of its head as tells it. */
function sizeOf(bytes: Buffer): number {
  if (bytes.length < 2) return 2;
  const short = bytes.readUInt8(1) & 0x7f;
  const head = headSizeOf(short);
  if (bytes.length < head) return head;
  if (short < 126) return head + short;
  return head + (short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2)));
}

/** With the mask of 4 bytes. */
function headSizeOf(short: number): number {
  if (short < 126) return 6;
  return short === 126 ? 8 : 14;
}

function frameOf(frame: Buffer): Frame {
  const first = frame.readUInt8(0);
  const head = headSizeOf(frame.readUInt8(1) & 0x7f);
  const mask = frame.subarray(head - 4, head);
  const payload = Buffer.from(frame.subarray(head));
  for (let at = 0; at < payload.length; at += 1) {
    payload[at] = (payload[at] as number) ^ (mask[at & 3] as number);
  }
  return { opcode: first & 0x0f, isLast: first >= 0x80, payload };
}

/** Of a frame of a server, which is whole and not masked. */
function headOf(opcode: number, length: number): Buffer {
  const first = 0x80 | opcode;
  if (length < 126) return Buffer.of(first, length);
  const head = Buffer.alloc(length > 0xffff ? 10 : 4);
  head[0] = first;
  head[1] = length > 0xffff ? 127 : 126;
  if (length > 0xffff) head.writeBigUInt64BE(BigInt(length), 2);
  else head.writeUInt16BE(length, 2);
  return head;
}
