/** Waiting for a condition, in place of a sleep. */
import { setTimeout as pause } from 'node:timers/promises';

const POLL_MS = 25;
/**
 * Ours: longer than any wait on a slow machine, and below the limit of a file. It limits the wait
 * and asserts no speed.
 */
const PATIENCE_MS = 60_000;

/**
 * The condition's first value that is not false, null or undefined. Throws when `limitMs` pass
 * without one, a minute by default; an error of the condition itself is thrown at once.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  limitMs = PATIENCE_MS,
  pollMs = POLL_MS,
): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const value = await condition();
    if (value !== false && value !== null && value !== undefined) {
      return value as NonNullable<Exclude<T, false>>;
    }
    if (performance.now() > deadline) throw new Error(`not within ${limitMs} ms: ${condition}`);
    await pause(pollMs);
  }
}
