/**
 * Socket hand-off: `tabern serve` accepts connections and passes them to this process. They are
 * served as if they had been accepted by the session server. A stand-alone runner receives none.
 */
import { Socket } from 'node:net';
import {
  isSocketHandOff,
  type SessionServerOpened,
  type SocketClosed,
} from '../../../proto/common/runner-ipc.ts';
import type { SessionServer } from './session-server.ts';

/** Reports the session server's address to the parent; serves handed-off sockets until exit. */
export function receiveHandedOffSockets(
  server: Pick<SessionServer, 'address' | 'serve'>,
  runnerId: string,
): void {
  if (process.send === undefined) return;
  process.on('message', (message: unknown, socket: unknown) => {
    if (!isSocketHandOff(message)) return;
    const { id } = message;
    const tellClosed = (): void => {
      const closed: SocketClosed = { type: 'connection-closed', id };
      if (process.connected) process.send?.(closed, () => undefined); // fails when the parent ends
    };
    // the socket is undefined when the client has disconnected meanwhile
    if (!(socket instanceof Socket)) return tellClosed();
    socket.once('close', tellClosed);
    socket.pause().unshift(Buffer.from(message.bytesRead, 'base64'));
    server.serve(socket);
    socket.resume();
  });
  const { address } = server;
  process.send({ type: 'session-server', address, runnerId } satisfies SessionServerOpened);
}
