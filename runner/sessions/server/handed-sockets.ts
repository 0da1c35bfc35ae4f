/**
 * Connections that `tabern serve` has accepted and hands over: they come in at the door as if they
 * had been dialled there. In a runner that stands alone nothing is handed over.
 */
import { Socket } from 'node:net';
import { type DoorOpened, isHandedOver } from '../../../proto/common/runner-ipc.ts';
import type { Door } from './session-server.ts';

/** Tells the parent of the door; takes what it hands over until the end of the process. */
export function takeHanded(door: Pick<Door, 'address' | 'serve'>): void {
  if (process.send === undefined) return;
  process.on('message', (message: unknown, socket: unknown) => {
    // a client that left meanwhile is no socket any more
    if (!isHandedOver(message) || !(socket instanceof Socket)) return;
    socket.pause().unshift(Buffer.from(message.said, 'base64'));
    door.serve(socket);
    socket.resume();
  });
  const opened: DoorOpened = { type: 'door', address: door.address };
  process.send(opened);
}
