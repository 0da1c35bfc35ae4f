/** Refuses requests and upgrades: an HTTP response with the body of our errors. */
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

const JSON_TYPE = 'application/json; charset=utf-8';

/** Refuses an upgrade, on its socket. `message` is for the client's user. */
export function refuse(socket: Duplex, statusCode: number, message: string): void {
  const body = bodyOf(statusCode, message);
  const head = [
    `HTTP/1.1 ${statusCode} ${STATUS_CODES[statusCode]}`,
    `content-type: ${JSON_TYPE}`,
    'cache-control: no-store',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  socket.end([...head, '', body].join('\r\n'));
}

/** Refuses a request. */
export function answerRefusal(response: ServerResponse, statusCode: number, message: string): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(statusCode, { 'content-type': JSON_TYPE }).end(bodyOf(statusCode, message));
}

function bodyOf(statusCode: number, message: string): string {
  return JSON.stringify({ statusCode, error: STATUS_CODES[statusCode], message });
}
