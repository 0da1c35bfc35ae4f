/**
 * Uids for jails of a root runner: one each, out of a range that no account uses, given back when
 * the jail ends. Two jails that run at once never share one, so neither can signal or trace the
 * other even if it left its namespaces.
 */

/**
 * Above every account that adduser makes, below systemd's dynamic and container ranges' usual start
 * (524288).
 */
const FIRST = 200_000;
const COUNT = 65_536;

const inUse = new Set<number>();
/** Starts somewhere else in each runner process, so that runners of one machine rarely meet. */
let next = (process.pid * 131) % COUNT;

/** A uid until it is disposed. */
export function lendUid(): Disposable & { uid: number } {
  if (inUse.size >= COUNT) throw new Error('every jail uid is in use');
  while (inUse.has(FIRST + next)) next = (next + 1) % COUNT;
  const uid = FIRST + next;
  next = (next + 1) % COUNT;
  inUse.add(uid);
  return { uid, [Symbol.dispose]: () => void inUse.delete(uid) };
}

/** A uid that its caller has lent and gives back: a jail's end leaves it lent. */
export function keptUid(uid: number): Disposable & { uid: number } {
  return { uid, [Symbol.dispose]: () => undefined };
}
