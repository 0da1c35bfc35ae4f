/**
 * Uids for jails of a root runner: one each, from a range that no account uses, released when the
 * jail ends. Two jails that run at once never share one, so neither can signal or trace the
 * other even if it left its namespaces.
 */

/**
 * Above every account that adduser creates, below the usual start of systemd's dynamic and
 * container ranges (524288).
 */
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

/** A uid that the caller has leased and releases itself: the end of a jail does not release it. */
export function callersUid(uid: number): Disposable & { uid: number } {
  return { uid, [Symbol.dispose]: () => undefined };
}
