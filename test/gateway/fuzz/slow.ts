/** Sockets that send a byte at a time, or do not read their answers. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { KEY } from '../../core/boot.ts';

const HOST = `host: x\r\nx-svc-api-key: ${KEY}\r\n`;
const JSON_TYPE = 'content-type: application/json\r\n';
const POST = `POST /v1/contexts HTTP/1.1\r\n${HOST}${JSON_TYPE}`;
/** Together 8 MB; Linux buffers 4 MB of unread bytes, and the rest waits in the service. */
const PIPELINED = 100;
const STARTS = {
  headers: ['GET /v1/contexts HTTP/1.1\r\nhost: x\r\na: '],
  bodies: [
    `${POST}content-length: 999\r\n\r\n{`,
    `${POST}transfer-encoding: chunked\r\n\r\n999\r\n`,
  ],
  readers: [`GET /openapi.json HTTP/1.1\r\n${HOST}\r\n`.repeat(PIPELINED)],
};

export type Slow = AsyncDisposable & {
  /** In milliseconds since its opening, of each that the service has closed. */
  closed: readonly number[];
};
type Wanted = {
  kind: keyof typeof STARTS;
  count: number;
  /** A byte so often, or no more at all. */
  dripMs?: number;
};

export async function openSlow(url: string, { kind, count, dripMs }: Wanted): Promise<Slow> {
  const closed: number[] = [];
  const starts = STARTS[kind];
  const opening = Array.from({ length: count }, async (_, at) => {
    const socket = await open(url, starts[at % starts.length] ?? '');
    const openedAt = performance.now();
    socket.once('close', () => closed.push(performance.now() - openedAt));
    // A paused reader notices its end only when it writes.
    return kind === 'readers' ? socket.pause() : socket.resume();
  });
  const sockets = await Promise.all(opening);
  const speak = () => {
    for (const socket of sockets) if (socket.writable) socket.write('a');
  };
  const drip = dripMs === undefined ? undefined : setInterval(speak, dripMs);
  return {
    closed,
    async [Symbol.asyncDispose]() {
      clearInterval(drip);
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function open(url: string, bytes: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined); // it is closed while it speaks
  await once(socket, 'connect');
  socket.write(bytes);
  return socket;
}
