/**
 * Joins two connections: forwards bytes in both directions without parsing them, with
 * back-pressure. When one side ends, the other ends after the remaining bytes were sent.
 */
import type { Socket } from 'node:net';
import { TUNNEL_LINGER_MS } from '../config.ts';

/** Resolves when both are closed. */
export async function splice(one: Socket, other: Socket): Promise<void> {
  await Promise.all([pass(one, other), pass(other, one)]);
}

/** Resolves when `from` is closed. Both sockets must have error listeners already. */
function pass(from: Socket, to: Socket): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  from.on('data', (bytes) => {
    if (to.writableEnded) return; // a drain has closed that half: there is no peer
    if (!to.write(bytes)) from.pause();
  });
  to.on('drain', () => from.resume());
  from.once('end', () => {
    to.end();
    // a peer that does not read the rest is not waited for
    to.setTimeout(TUNNEL_LINGER_MS, () => to.destroy());
  });
  from.once('close', () => {
    to.destroySoon();
    resolve();
  });
  if (from.destroyed) {
    to.destroySoon();
    resolve();
  }
  from.resume();
  return closed;
}
