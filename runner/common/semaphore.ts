/** A number of slots handed out in the order in which they were asked for. */

export type Slots = {
  /** Waits for a free slot; rejects with the signal's reason. */
  take(signal: AbortSignal): Promise<void>;
  give(): void;
};

export function openSlots(count: number): Slots {
  let free = count;
  const waiting = new Set<() => void>();
  return {
    async take(signal) {
      signal.throwIfAborted();
      if (free > 0) {
        free -= 1;
        return;
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const abort = (): void => {
        waiting.delete(resolve);
        reject(signal.reason);
      };
      waiting.add(resolve);
      signal.addEventListener('abort', abort, { once: true });
      await promise.finally(() => signal.removeEventListener('abort', abort));
    },
    give() {
      const [first] = waiting;
      if (first === undefined) {
        free += 1;
        return;
      }
      waiting.delete(first);
      first(); // the slot goes over without having been free
    },
  };
}
