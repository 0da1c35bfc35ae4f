/**
 * Items that wait in a pool of all projects: each owner's in order of arrival, the owners in turn
 * (round robin). An owner with many items delays another owner by one item, not by all of them.
 */

export type FairQueue<T> = {
  readonly size: number;
  /** How many items of one owner wait. */
  sizeOf(owner: string): number;
  push(owner: string, item: T): void;
  /** Removes the next item, of owners for which `isAllowed` holds. */
  shift(isAllowed?: (owner: string) => boolean): { owner: string; item: T } | undefined;
  /** Removes one item; false when it does not wait any longer. */
  remove(owner: string, item: T): boolean;
  /** Removes all items of one owner, or of all owners. */
  clear(owner?: string): T[];
};

export function openFairQueue<T>(): FairQueue<T> {
  /** The owner of the first key has the next turn. */
  const waiting = new Map<string, Set<T>>();
  let size = 0;

  function remove(owner: string, item: T): boolean {
    const own = waiting.get(owner);
    if (!own?.delete(item)) return false;
    size -= 1;
    if (own.size === 0) waiting.delete(owner);
    return true;
  }

  function clear(owner?: string): T[] {
    const owners = owner === undefined ? [...waiting.keys()] : [owner];
    return owners.flatMap((one) => {
      const items = [...(waiting.get(one) ?? [])];
      waiting.delete(one);
      size -= items.length;
      return items;
    });
  }

  return {
    get size() {
      return size;
    },
    sizeOf: (owner) => waiting.get(owner)?.size ?? 0,
    push(owner, item) {
      const own = waiting.get(owner) ?? new Set();
      waiting.set(owner, own.add(item));
      size += 1;
    },
    shift(isAllowed = () => true) {
      for (const [owner, own] of waiting) {
        const [item] = own;
        if (item === undefined || !isAllowed(owner)) continue;
        remove(owner, item);
        // Behind the other owners.
        if (waiting.delete(owner)) waiting.set(owner, own);
        return { owner, item };
      }
      return undefined;
    },
    remove,
    clear,
  };
}
