/**
 * Watches one client's connection while nothing happens on it: pings it, so that proxies on the way
 * keep it open, and ends it when no message has passed for long. A peer that vanished without a
 * word is ended so too: its pongs are not waited for, because a script that stands at a breakpoint
 * answers none.
 */
import type { WebSocket } from 'ws';

/** Ours: below the 60 s after which common proxies cut a connection that says nothing. */
const PING_MS = 25_000;
/** How exactly the time is kept: to a tenth. */
const LOOKS = 10;

export type Watched = {
  /** Messages that passed so far, either way. */
  readonly messages: number;
  close(code: number, reason: string): void;
};

/** Until the socket closes. `idleMs`: undefined for never. */
export function watchIdle(
  socket: Pick<WebSocket, 'ping' | 'once'>,
  client: Watched,
  idleMs: number | undefined,
): void {
  const ping = setInterval(() => socket.ping(), PING_MS);
  let seen = client.messages;
  let quiet = 0;
  const look = (): void => {
    quiet = client.messages === seen ? quiet + 1 : 0;
    seen = client.messages;
    if (quiet >= LOOKS) client.close(1008, `no CDP traffic for ${Number(idleMs) / 1000} s`);
  };
  const looking = idleMs === undefined ? undefined : setInterval(look, idleMs / LOOKS);
  socket.once('close', () => {
    clearInterval(ping);
    clearInterval(looking);
  });
}
