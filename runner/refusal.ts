/** How an upgrade is refused: an HTTP answer with the body of each error of ours, on its socket. */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

/** `message` is for the client's user. */
export function refuse(socket: Duplex, statusCode: number, message: string): void {
  const error = STATUS_CODES[statusCode];
  const body = JSON.stringify({ statusCode, error, message });
  const head = [
    `HTTP/1.1 ${statusCode} ${error}`,
    'content-type: application/json; charset=utf-8',
    'cache-control: no-store',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  socket.end([...head, '', body].join('\r\n'));
}
