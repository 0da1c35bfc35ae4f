/**
 * Closes connections of revoked API keys. This happens at the runner's session server, where every
 * connection to a session ends. Core reports the keys and refuses new connections itself.
 */
import type { Socket } from 'node:net';

/**
 * For the close frame to be sent; then the socket is destroyed. Ours: within the second promised.
 */
const GOODBYE_MS = 200;
const POLICY_VIOLATION = 1008;
const REASON = 'the API key was revoked';

export type Revocations = {
  /** False for a revoked key; otherwise the socket is closed when the key is revoked. */
  track(keyId: string, socket: Socket): boolean;
  /** All revoked keys; a revocation is permanent. */
  revoke(keyIds: readonly string[]): void;
};

export function openRevocations(): Revocations {
  const open = new Map<string, Set<Socket>>();
  const revoked = new Set<string>();
  return {
    track(keyId, socket) {
      if (revoked.has(keyId)) return false;
      const sockets = open.get(keyId) ?? new Set();
      open.set(keyId, sockets.add(socket));
      socket.once('close', () => {
        sockets.delete(socket);
        if (sockets.size === 0 && open.get(keyId) === sockets) open.delete(keyId);
      });
      return true;
    },
    revoke(keyIds) {
      for (const keyId of keyIds) {
        revoked.add(keyId);
        for (const socket of open.get(keyId) ?? []) close(socket);
      }
    },
  };
}

/** Safe between two frames, because `ws` writes each frame in one piece. */
function close(socket: Socket): void {
  socket.end(closeFrame());
  const cut = setTimeout(() => socket.destroy(), GOODBYE_MS);
  socket.once('close', () => clearTimeout(cut));
}

/** RFC 6455 5.5.1: final, opcode 8, not masked. */
function closeFrame(): Buffer {
  const body = Buffer.concat([Buffer.alloc(2), Buffer.from(REASON)]);
  body.writeUInt16BE(POLICY_VIOLATION);
  return Buffer.concat([Buffer.of(0x88, body.length), body]);
}
