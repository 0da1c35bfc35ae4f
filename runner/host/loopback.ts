/**
 * Loopback ports inside a jail without network, each piped to a unix socket of the supervisor. So a
 * connect URL stays an ordinary ws://127.0.0.1:9222/… and drivers run unpatched.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';

const LOOPBACK = '127.0.0.1';

/** Listens until the process ends. Port 0 selects a free port. Returns the port. */
export async function openLoopback(port: number, socketPath: string): Promise<number> {
  const server = createServer({ noDelay: true }, (inside) => {
    const outside = connect(socketPath);
    inside.pipe(outside).pipe(inside);
    // when one side breaks, the other is destroyed; the supervisor and the driver each see a closed
    // connection
    inside.on('error', () => outside.destroy());
    outside.on('error', () => inside.destroy());
    inside.on('close', () => outside.destroy());
    outside.on('close', () => inside.destroy());
  });
  server.listen(port, LOOPBACK);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
