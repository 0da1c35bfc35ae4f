/**
 * Uids for jails of a root runner: one each, from a range that no account uses, released when the
 * jail ends. Two jails that run at once never share one, so neither can signal or trace the
 * other even if it left its namespaces.
 */
import type { JailSpec } from './jail.ts';
import { chownTree } from './spawn.ts';

/** Above the accounts of adduser, below the usual ranges of systemd and containers (524288). */
const FIRST = 200_000;
const COUNT = 65_536;

const inUse = new Set<number>();
/** Differs by runner process, so that runners of one machine rarely use the same uid. */
let next = (process.pid * 131) % COUNT;

/** A uid that is in use until it is disposed of. */
export function leaseUid(): Disposable & { uid: number } {
  if (inUse.size >= COUNT) throw new Error('every jail uid is in use');
  while (inUse.has(FIRST + next)) next = (next + 1) % COUNT;
  const uid = FIRST + next;
  next = (next + 1) % COUNT;
  inUse.add(uid);
  return { uid, [Symbol.dispose]: () => void inUse.delete(uid) };
}

/**
 * The uid of a root runner's jail: the spec's, or a leased one, which becomes the owner of the
 * writable mounts. Undefined for other runners.
 */
export function uidFor({ uid, mounts }: JailSpec): (Disposable & { uid: number }) | undefined {
  if (process.getuid?.() !== 0) return undefined;
  if (uid !== undefined) return { uid, [Symbol.dispose]: () => undefined };
  using leasing = new DisposableStack(); // released when a mount is missing
  const leased = leasing.use(leaseUid());
  for (const { from, writable } of mounts) if (writable === true) chownTree(leased.uid, from);
  leasing.move();
  return leased;
}
