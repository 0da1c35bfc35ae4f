/**
 * Loopback ports inside a jail without network, each piped to a unix socket of the supervisor. So a
 * connect URL stays an ordinary ws://127.0.0.1:9222/… and drivers run unpatched.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { pipeline } from 'node:stream';

/** Listens until the process ends. Port 0 selects a free port. Returns the port. */
export async function openLoopback(port: number, socketPath: string): Promise<number> {
  const server = createServer({ noDelay: true }, (inside) => {
    const outside = connect(socketPath);
    // when one side breaks, both are destroyed: supervisor and driver each see a closed connection
    pipeline(inside, outside, inside, () => undefined);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
