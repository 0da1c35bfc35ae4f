/**
 * A semaphore with at most `max` permits, granted in the order of the requests. With owners, an
 * owner holds at most `ofOwner` permits and owners are served in turn: while `ofOwner` is below
 * `max`, one owner alone cannot make the others wait.
 *   waiting --granted--> held --dispose--> released;  waiting --abort--> removed
 */
import { openFairQueue } from './fair-queue.ts';

export type Semaphore = {
  /** Dispose of the permit to release it. Throws the signal's reason if it aborts first. */
  acquire(signal: AbortSignal, owner?: string): Promise<Disposable>;
};

type Limits = { max: number; ofOwner?: number };

export function openSemaphore({ max, ofOwner = max }: Limits): Semaphore {
  const waiting = openFairQueue<() => void>();
  const held = new Map<string, number>();
  let free = max;

  const heldBy = (owner: string) => held.get(owner) ?? 0;

  function grant(owner: string): void {
    free -= 1;
    held.set(owner, heldBy(owner) + 1);
  }

  /** Disposable once: a second disposal releases nothing. */
  function permitOf(owner: string): Disposable {
    let isHeld = true;
    return {
      [Symbol.dispose]() {
        if (!isHeld) return;
        isHeld = false;
        const left = heldBy(owner) - 1;
        if (left === 0) held.delete(owner);
        else held.set(owner, left);
        free += 1;
        const next = waiting.shift((one) => heldBy(one) < ofOwner);
        if (!next) return;
        grant(next.owner); // synchronously: a new request must not be granted it first
        next.item();
      },
    };
  }

  return {
    async acquire(signal, owner = '') {
      signal.throwIfAborted();
      // While a permit is free, every waiting owner already holds `ofOwner` permits.
      if (free > 0 && heldBy(owner) < ofOwner) {
        grant(owner);
        return permitOf(owner);
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const remove = () => void (waiting.remove(owner, resolve) && reject(signal.reason));
      waiting.push(owner, resolve);
      signal.addEventListener('abort', remove, { once: true });
      await promise.finally(() => signal.removeEventListener('abort', remove));
      return permitOf(owner);
    },
  };
}
