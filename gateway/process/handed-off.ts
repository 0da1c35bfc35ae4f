/**
 * Connections that a runner has received from `tabern serve`. They stay open here, unread, so that
 * the clients of a runner that was killed hear why: its kernel closes them without a close frame.
 *   handed off -> closed by the runner | closed here, when the runner has ended
 */
import type { Socket } from 'node:net';
import { RUNNER_LOST } from '../http/close-frames.ts';

/** Ours: for a client that does not read. */
const LINGER_MS = 2_000;

export type HandedOff = {
  /**
   * Reads no more from it, or the runner would not get all bytes. Returns the connection's number,
   * by which the runner names it.
   */
  keep(socket: Socket): number;
  /** The runner has closed it. */
  closed(id: number): void;
  /** The runner has ended: clients that it told nothing are told. */
  end(): void;
};

export function openHandedOff(): HandedOff {
  const kept = new Map<number, Socket>();
  let last = 0;
  return {
    keep(socket) {
      stopReading(socket);
      last += 1;
      const id = last;
      kept.set(id, socket);
      socket.once('close', () => kept.delete(id)).on('error', () => socket.destroy());
      return id;
    },
    closed: (id) => kept.get(id)?.destroy(),
    end() {
      for (const socket of kept.values()) {
        socket.setTimeout(LINGER_MS, () => socket.destroy());
        // an error where the runner has closed its half
        socket.end(RUNNER_LOST, () => socket.destroy());
      }
    },
  };
}

/** Node has no public call for it: a socket that was paused reads on until its buffer is full. */
function stopReading(socket: Socket): void {
  const { _handle: handle } = socket as { _handle?: { readStop(): void } | null };
  handle?.readStop();
}
