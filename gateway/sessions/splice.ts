/**
 * Joins two connections: what comes from one leaves by the other, unread, never faster than it is
 * taken. When one side ends, so does the other, after what is on its way.
 */
import type { Socket } from 'node:net';
import { TUNNEL_LINGER_MS } from '../config.ts';

/** Resolves when both are closed. */
export async function splice(one: Socket, other: Socket): Promise<void> {
  await Promise.all([pass(one, other), pass(other, one)]);
}

/** Resolves when `from` is closed. Both must have a listener for errors already. */
function pass(from: Socket, to: Socket): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  from.on('data', (bytes) => {
    if (to.writableEnded) return; // a drain has closed that half: there is nobody to tell
    if (!to.write(bytes)) from.pause();
  });
  to.on('drain', () => from.resume());
  from.once('end', () => {
    to.end();
    // who takes nothing of what is left is not waited for
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
