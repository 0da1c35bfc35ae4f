/**
 * A TCP front, as a load balancer without TLS of its own: each connection goes to the next server,
 * or to the one after it when that one refuses. Bytes are unchanged.
 */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

const POLL_MS = 20;

export type Address = { host: string; port: number };

/** Listens when it resolves. */
export async function startFront(
  { host, port }: Address,
  servers: readonly Address[],
): Promise<Server> {
  let next = 0;
  const options = { allowHalfOpen: true, pauseOnConnect: true, noDelay: true };
  const front = createServer(options, (client) => {
    const first = next;
    next = (next + 1) % servers.length;
    const inTurn = [...servers.slice(first), ...servers.slice(0, first)];
    void join(client, inTurn);
  });
  front.listen(port, host);
  await once(front, 'listening');
  return front;
}

/** Waits until the server accepts connections. */
export async function accepts(address: Address): Promise<void> {
  for (;;) {
    const socket = await connected(address);
    socket?.destroy();
    if (socket) return;
    await pause(POLL_MS);
  }
}

async function join(client: Socket, servers: readonly Address[]): Promise<void> {
  client.on('error', () => client.destroy());
  for (const address of servers) {
    const server = await connected(address);
    if (server === undefined) continue;
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => other.destroy());
      one.once('close', () => other.destroySoon());
    }
    if (client.destroyed) server.destroy();
    client.pipe(server).pipe(client);
    return;
  }
  client.resetAndDestroy();
}

async function connected(address: Address): Promise<Socket | undefined> {
  const socket = connect({ ...address, allowHalfOpen: true, noDelay: true });
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  return isOpen ? socket : undefined;
}
