/** A wait that a signal may end. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Resolves after so many milliseconds, or when the signal aborts. */
export type Pause = (ms: number, signal: AbortSignal) => Promise<void>;

export const pause: Pause = async (ms, signal) => {
  await sleep(ms, undefined, { signal }).catch(() => undefined); // it rejects only when aborted
};
