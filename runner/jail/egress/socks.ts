/**
 * The words of SOCKS 5 (RFC 1928) as upstream as a browser says them: no credentials, and CONNECT. It
 * asks for a place and then speaks to it as if it had dialled. There is no other end of it in here.
 */
import { isIPv6 } from 'node:net';
import type { HttpConnection } from './http-connection.ts';

/** The first byte of all that its client says; no request of HTTP begins with it. */
export const SOCKS_VERSION = 5;

const NO_CREDENTIALS = 0;
const NONE_ACCEPTABLE = 0xff;
const CONNECT = 1;
const [IPV4, NAME, IPV6] = [1, 3, 4];
const GRANTED = 0;
const COMMAND_NOT_SUPPORTED = 7;
const ADDRESS_NOT_SUPPORTED = 8;

/** Of a name: what could be read as more than a host is none. */
const HOST = /^[^/\\?#@:\s[\]]+$/;

/** The authority that the client asks for; undefined when it asks for none, and has heard so. */
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

/** What comes next comes from there. */
export function grant({ socket }: HttpConnection): void {
  socket.write(reply(GRANTED));
}

function refused({ socket }: HttpConnection, code: number): undefined {
  socket.write(reply(code));
}

/** As a URL names it. */
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
  if (isIPv6(name)) return `[${name}]`; // browsers write every host as a name
  return HOST.test(name) ? name : undefined;
}

/** The address in it, which is for those who listen, is nobody's. */
function reply(code: number): Buffer {
  return Buffer.of(SOCKS_VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0);
}
