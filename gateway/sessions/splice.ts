/**
 * Joins two connections: forwards bytes in both directions without parsing them, with
 * back-pressure. When one side ends, the other ends after the remaining bytes were sent.
 */
import type { Socket } from 'node:net';
import { TUNNEL_LINGER_MS } from '../config.ts';

/** What a client is sent by the gateway itself. */
type LastWords = {
  /** The next bytes for the client. */
  read(bytes: Buffer): void;
  /** The last ones, when none follow. */
  last(): Buffer;
};

/** Resolves when both are closed. */
export async function splice(client: Socket, runner: Socket, words?: LastWords): Promise<void> {
  await Promise.all([pass(client, runner), pass(runner, client, words)]);
}

/** Resolves when `from` is closed. Both sockets must have error listeners already. */
function pass(from: Socket, to: Socket, words?: LastWords): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const finish = (): void => {
    if (words && !to.writableEnded) to.end(words.last());
  };
  from.on('data', (bytes) => {
    if (to.writableEnded) return; // a drain has closed that half: there is no peer
    words?.read(bytes);
    if (!to.write(bytes)) from.pause();
  });
  to.on('drain', () => from.resume());
  from.once('end', () => {
    finish();
    to.end();
    // a peer that does not read the rest is not waited for
    to.setTimeout(TUNNEL_LINGER_MS, () => to.destroy());
  });
  from.once('close', () => {
    finish();
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
