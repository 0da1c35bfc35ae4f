/**
 * A main thread that blocks for good, as the lease thread sees it: no beat. Its leases would be
 * renewed for ever, and nobody would serve them. Silence is counted in ticks of the lease thread
 * itself: a process that was stopped and continued, or a machine that slept, was not blocked.
 */

/** In milliseconds. Ours. */
const TICK_MS = 1_000;
/**
 * In milliseconds. Ours: twelve times the longest stall ever seen (5 s, a command of 14 MB), for a
 * slow machine, and half of the two minutes in which core waits for the end of what is over.
 */
export const STALL_MAX_MS = 60_000;

export type StallWatch = Disposable & {
  /** The main thread turned. */
  beat(): void;
};

/** `onStall` is called once; `setTick` stands for setInterval. */
export function watchForStall(
  onStall: (silentMs: number) => void,
  setTick: (tick: () => void, ms: number) => Disposable = ticking,
): StallWatch {
  let silentMs = 0;
  const ticks = setTick(() => {
    silentMs += TICK_MS;
    if (silentMs <= STALL_MAX_MS) return;
    ticks[Symbol.dispose]();
    onStall(silentMs);
  }, TICK_MS);
  return {
    beat() {
      silentMs = 0;
    },
    [Symbol.dispose]: () => ticks[Symbol.dispose](),
  };
}

function ticking(tick: () => void, ms: number): Disposable {
  const timer = setInterval(tick, ms);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
