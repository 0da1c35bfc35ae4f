/** Counts the traffic of an egress. */
import type { Socket } from 'node:net';
import type { Target } from './dial.ts';

type Bytes = { sent: number; received: number; managed: number };

/** Returns a function that counts the bytes since its last call. */
export function meter({ bytes }: { bytes: Bytes }, socket: Socket, { via }: Target): () => void {
  let [wasSent, wasReceived] = [0, 0];
  return () => {
    const [sent, received] = [socket.bytesWritten - wasSent, socket.bytesRead - wasReceived];
    [wasSent, wasReceived] = [socket.bytesWritten, socket.bytesRead];
    bytes.sent += sent;
    bytes.received += received;
    if (via?.upstream.isManaged) bytes.managed += sent + received;
  };
}
