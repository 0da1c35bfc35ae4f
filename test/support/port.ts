/** Ports of this machine. */
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ports that Linux assigns to connections and to `listen(0)` (32768 and up by default),
 * so that no other process receives the port before it is used.
 */
const FIRST = 10_240;
const COUNT = 20_000;
const TRIES_MAX = 100;

/** A TCP port of 127.0.0.1 without a listener. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    if (await isFree(port)) return port;
  }
  throw new Error(`none of ${TRIES_MAX} ports is free`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<boolean>();
  server.once('error', () => resolve(false));
  server.listen(port, '127.0.0.1', () => resolve(true));
  if (!(await promise)) return false;
  server.close();
  await once(server, 'close');
  return true;
}
