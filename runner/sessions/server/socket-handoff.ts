/**
 * Connections that `tabern serve` has accepted and hands over: they come in at the server as if they
 * had been dialled there. In a runner that stands alone nothing is handed over.
 */
import { Socket } from 'node:net';
import { isSocketHandOff, type SessionServerOpened } from '../../../proto/common/runner-ipc.ts';
import type { SessionServer } from './session-server.ts';

/** Tells the parent of the server; takes what it hands over until the end of the process. */
export function receiveHandedOffSockets(server: Pick<SessionServer, 'address' | 'serve'>): void {
  if (process.send === undefined) return;
  process.on('message', (message: unknown, socket: unknown) => {
    // a client that left meanwhile is no socket any more
    if (!isSocketHandOff(message) || !(socket instanceof Socket)) return;
    socket.pause().unshift(Buffer.from(message.bytesRead, 'base64'));
    server.serve(socket);
    socket.resume();
  });
  const opened: SessionServerOpened = { type: 'session-server', address: server.address };
  process.send(opened);
}
