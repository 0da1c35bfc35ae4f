/**
 * Repeats a call to core while core restarts. Only for calls that may be repeated without a second
 * effect.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Fault } from '../../proto/rpc/errors.ts';

/** Ours: together 12 s; a lease that was not renewed for 15 s is lost anyway. */
const PAUSES_MS = [100, 300, 600, 1_000, 2_000, 4_000, 4_000];

/**
 * The call's answer. Throws its error when it cannot be mended by waiting, or was not in time; the
 * signal's when that aborts a pause.
 */
export async function retried<T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (const ms of PAUSES_MS) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof Fault) || error.row.retry !== 'yes') throw error;
      await pause(ms, undefined, { signal });
    }
  }
  return call();
}
