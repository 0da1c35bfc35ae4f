/**
 * Shares of a pool that is used by all projects and cannot wait, such as memory. An owner may hold
 * at most as much as it leaves free: one owner alone has half of the pool, each of n owners a part
 * of n + 1, and the next one finds room. Source: dynamic thresholds of shared-memory switches
 * (Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).
 */

export type Shares = {
  heldBy(owner: string): number;
  /** False, and nothing acquired, when the owner would hold more than its share. */
  acquire(owner: string, amount: number): boolean;
  release(owner: string, amount: number): void;
};

/** `ofOwner`: what an owner may hold at most, whatever is free. */
export function openShares(size: number, ofOwner = size): Shares {
  const held = new Map<string, number>();
  let total = 0;
  return {
    heldBy: (owner) => held.get(owner) ?? 0,
    acquire(owner, amount) {
      const own = (held.get(owner) ?? 0) + amount;
      if (own > ofOwner || own > size - total - amount) return false;
      held.set(owner, own);
      total += amount;
      return true;
    },
    release(owner, amount) {
      const own = (held.get(owner) ?? 0) - amount;
      if (own > 0) held.set(owner, own);
      else held.delete(owner);
      total -= amount;
    },
  };
}
