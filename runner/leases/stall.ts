/**
 * Detects a blocked main thread: the lease thread receives no beat, and would renew the leases
 * forever although their work cannot continue. Silence is counted in ticks of the lease thread, so
 * a stopped and continued process, a machine that slept, or a main thread in a debugger does not
 * count as blocked.
 */

/** In milliseconds. Ours. */
const TICK_MS = 1_000;
/**
 * In milliseconds. Ours: twelve times the longest stall ever measured (5 s, a command of 14 MB),
 * for a slow machine, and half of the two minutes that core waits for the end of released work.
 */
export const STALL_MAX_MS = 60_000;

export type StallWatch = Disposable & {
  /** The main thread is not blocked. `isInspected`: a debugger can stop it. */
  beat(isInspected: boolean): void;
};

/** Each is called once. `onInspected`: the thread may be at a breakpoint, so no `onStall`. */
type Listener = { onStall(silentMs: number): void; onInspected(silentMs: number): void };

/** `setTick` is for tests. */
export function watchForStall(
  { onStall, onInspected }: Listener,
  setTick: (tick: () => void, ms: number) => Disposable = setInterval,
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
