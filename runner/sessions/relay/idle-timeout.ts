/**
 * Watches one client's connection for inactivity: sends pings, so that proxies keep it open, and
 * closes it when no message was sent for the idle time. A peer that vanished is closed the same
 * way: pongs are not required, because a script at a breakpoint sends none.
 */
import type { Connection } from './connection.ts';

/** Ours: below the 60 s after which common proxies close an idle connection. */
const PING_MS = 25_000;
/** Precision of the idle time: a tenth. */
const LOOKS = 10;

export type Watched = {
  /** Messages so far, in both directions. */
  readonly messages: number;
  close(code: number, reason: string): void;
};

export type IdleOptions = {
  /** Undefined: no limit. */
  idleMs?: number | undefined;
  /** Whether the session waits for a person, which is no inactivity. */
  isHeld?: (() => boolean) | undefined;
};

/** Stops when the connection closes. */
export function watchIdle(
  connection: Pick<Connection, 'ping' | 'closed'>,
  client: Watched,
  { idleMs, isHeld }: IdleOptions,
): void {
  const ping = setInterval(connection.ping, PING_MS);
  let seen = client.messages;
  let quiet = 0;
  const look = (): void => {
    quiet = client.messages === seen && !isHeld?.() ? quiet + 1 : 0;
    seen = client.messages;
    if (quiet >= LOOKS) client.close(1008, `no CDP traffic for ${Number(idleMs) / 1000} s`);
  };
  const looking = idleMs === undefined ? undefined : setInterval(look, idleMs / LOOKS);
  void connection.closed.then(() => {
    clearInterval(ping);
    clearInterval(looking);
  });
}
