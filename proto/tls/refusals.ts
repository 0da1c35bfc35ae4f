/**
 * Log lines about refused clients: the first of a reason at once, the others as a count once a
 * minute. Anybody on the network can be refused.
 */
import type { Log } from '../common/log.ts';

/** In milliseconds. Ours. */
const PERIOD_MS = 60_000;
/** Reasons are OpenSSL's: some dozens. */
const REASONS_MAX = 100;

export type Refusals = Disposable & { add(reason: string, message: string): void };

/** `periodMs`: shorter in tests. Dispose of it: then the last counts are logged. */
export function openRefusals(log: Log, periodMs = PERIOD_MS): Refusals {
  const waiting = new Map<string, { count: number; message: string }>();
  let timer: NodeJS.Timeout | undefined;
  function flush(): void {
    timer = undefined;
    for (const [reason, { count, message }] of waiting) {
      if (count > 0) log.warn({ reason, count }, message);
    }
    const hasCounted = [...waiting.values()].some(({ count }) => count > 0);
    for (const one of waiting.values()) one.count = 0;
    if (!hasCounted) waiting.clear();
    else arm();
  }
  function arm(): void {
    timer ??= setTimeout(flush, periodMs).unref();
  }
  return {
    add(reason, message) {
      const known = waiting.get(reason);
      if (known !== undefined) known.count += 1;
      else if (waiting.size < REASONS_MAX) {
        log.warn({ reason, count: 1 }, message);
        waiting.set(reason, { count: 0, message });
      }
      arm();
    },
    [Symbol.dispose]() {
      clearTimeout(timer);
      flush();
      clearTimeout(timer);
    },
  };
}
