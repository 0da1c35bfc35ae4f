/** The server side of SOCKS 5 (RFC 1928) for browsers: no credentials, and CONNECT only. */
import { isIPv6 } from 'node:net';
import type { HttpConnection } from './http-connection.ts';

/** The first byte of a client's messages; no HTTP request begins with it. */
export const SOCKS_VERSION = 5;

const NO_CREDENTIALS = 0;
const NONE_ACCEPTABLE = 0xff;
const CONNECT = 1;
const [IPV4, NAME, IPV6] = [1, 3, 4];
const GRANTED = 0;
const COMMAND_NOT_SUPPORTED = 7;
const ADDRESS_NOT_SUPPORTED = 8;

/** Valid host names: no character that could extend beyond the host in a URL. */
const HOST = /^[^/\\?#@:\s[\]]+$/;

/** The requested authority; undefined after an invalid or refused request. */
export async function readDestination(connection: HttpConnection): Promise<string | undefined> {
  const [, count = 0] = (await connection.take(2)) ?? [];
  const methods = await connection.take(count);
  if (methods === undefined) return undefined;
  const isOpen = methods.includes(NO_CREDENTIALS);
  connection.socket.write(Buffer.of(SOCKS_VERSION, isOpen ? NO_CREDENTIALS : NONE_ACCEPTABLE));
  const head = isOpen ? await connection.take(4) : undefined;
  if (head?.[0] !== SOCKS_VERSION) return undefined;
  const [, command, , kind] = head;
  if (command !== CONNECT) return refused(connection, COMMAND_NOT_SUPPORTED);
  const host = await hostOf(connection, kind);
  if (host === undefined) return refused(connection, ADDRESS_NOT_SUPPORTED);
  const port = await connection.take(2);
  return port && `${host}:${port.readUInt16BE()}`;
}

/** Reports success: later bytes belong to the tunnel. */
export function grant({ socket }: HttpConnection): void {
  socket.write(reply(GRANTED));
}

function refused({ socket }: HttpConnection, code: number): undefined {
  socket.write(reply(code));
}

/** In the form of a URL's host. */
async function hostOf(
  connection: HttpConnection,
  kind: number | undefined,
): Promise<string | undefined> {
  if (kind === IPV4) return (await connection.take(4))?.join('.');
  if (kind === IPV6) {
    const words = (await connection.take(16))?.toString('hex').match(/.{4}/g);
    return words ? `[${words.join(':')}]` : undefined;
  }
  if (kind !== NAME) return undefined;
  const [length = 0] = (await connection.take(1)) ?? [];
  const name = (await connection.take(length))?.toString('latin1') ?? '';
  if (isIPv6(name)) return `[${name}]`; // browsers send every host as a name
  return HOST.test(name) ? name : undefined;
}

/** The bound address is unused and zero. */
function reply(code: number): Buffer {
  return Buffer.of(SOCKS_VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0);
}
