/**
 * Detects a main thread that is blocked for good: the lease thread receives no beat. Its leases
 * would be renewed for ever although their work cannot continue. Silence is counted in ticks of the
 * lease thread, so a process that was stopped and continued, or a machine that slept, does not
 * count as blocked; nor does a main thread that a debugger may have stopped.
 */

/** In milliseconds. Ours. */
const TICK_MS = 1_000;
/**
 * In milliseconds. Ours: twelve times the longest stall ever seen (5 s, a command of 14 MB), for a
 * slow machine, and half of the two minutes in which core waits for the end of what is over.
 */
export const STALL_MAX_MS = 60_000;

export type StallWatch = Disposable & {
  /** The main thread is not blocked. `isInspected`: a debugger can stop it. */
  beat(isInspected: boolean): void;
};

/** Each is called once. `onInspected`: it may be at a breakpoint, so `onStall` is not called. */
type Listener = { onStall(silentMs: number): void; onInspected(silentMs: number): void };

/** `setTick` stands for setInterval. */
export function watchForStall(
  { onStall, onInspected }: Listener,
  setTick: (tick: () => void, ms: number) => Disposable = ticking,
): StallWatch {
  let silentMs = 0;
  let isInspected = false;
  let hasReported = false;
  const ticks = setTick(() => {
    silentMs += TICK_MS;
    if (silentMs <= STALL_MAX_MS) return;
    if (isInspected) {
      if (!hasReported) onInspected(silentMs);
      hasReported = true;
      return;
    }
    ticks[Symbol.dispose]();
    onStall(silentMs);
  }, TICK_MS);
  return {
    beat(isNow) {
      silentMs = 0;
      isInspected = isNow;
    },
    [Symbol.dispose]: () => ticks[Symbol.dispose](),
  };
}

function ticking(tick: () => void, ms: number): Disposable {
  const timer = setInterval(tick, ms);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
