/**
 * Turns: at most so many pieces of a heavy work at once; who comes later waits, in order, until its
 * turn or its signal.
 */

export type Turns = {
  /** Dispose of it when the work is over. Throws the signal's reason. */
  take(signal: AbortSignal): Promise<Disposable>;
};

export function openTurns(max: number): Turns {
  const waiting = new Set<() => void>();
  let free = max;
  const turn = (): Disposable => ({
    [Symbol.dispose]() {
      const [next] = waiting;
      if (next)
        next(); // it passes on, and is free for nobody else in between
      else free += 1;
    },
  });
  return {
    async take(signal) {
      signal.throwIfAborted();
      if (free > 0) free -= 1;
      else await passedOn(waiting, signal);
      return turn();
    },
  };
}

/** Resolves when a turn is passed on to it: the oldest who waits is told first. */
function passedOn(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const leave = () => {
    waiting.delete(told);
    reject(signal.reason);
  };
  const told = () => {
    waiting.delete(told);
    signal.removeEventListener('abort', leave);
    resolve();
  };
  waiting.add(told);
  signal.addEventListener('abort', leave, { once: true });
  return promise;
}
