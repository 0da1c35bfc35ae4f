/**
 * A semaphore for heavy work of all projects: so many pieces at once, so many of one owner, owners
 * in turn. While each owner may hold fewer than all, one owner alone cannot make others wait.
 *   waiting --turn--> held --dispose--> (free for the next owner);  waiting --abort--> (left)
 */
import { openFairQueue } from './fair-queue.ts';

export type Semaphore = {
  /** Dispose of the turn to release it. Throws the signal's reason when it aborts first. */
  acquire(owner: string, signal: AbortSignal): Promise<Disposable>;
};

export function openSemaphore({ max, ofOwner }: { max: number; ofOwner: number }): Semaphore {
  const waiting = openFairQueue<() => void>();
  const held = new Map<string, number>();
  let free = max;

  const heldBy = (owner: string) => held.get(owner) ?? 0;

  function take(owner: string): void {
    free -= 1;
    held.set(owner, heldBy(owner) + 1);
  }

  /** Disposable once: a second disposal releases nothing. */
  function turnOf(owner: string): Disposable {
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
        take(next.owner); // at once: a newcomer must not acquire it first
        next.item();
      },
    };
  }

  return {
    async acquire(owner, signal) {
      signal.throwIfAborted();
      // While something is free, every owner that waits holds its share already.
      if (free > 0 && heldBy(owner) < ofOwner) {
        take(owner);
        return turnOf(owner);
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const leave = () => void (waiting.remove(owner, resolve) && reject(signal.reason));
      waiting.push(owner, resolve);
      signal.addEventListener('abort', leave, { once: true });
      await promise.finally(() => signal.removeEventListener('abort', leave));
      return turnOf(owner);
    },
  };
}
