/** A wait that a signal may end. */
import { setTimeout as sleep } from 'node:timers/promises';

export type Pause = (ms: number, signal: AbortSignal) => Promise<void>;

/** Resolves after so many milliseconds, or when the signal aborts. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined); // rejects only when aborted
}
