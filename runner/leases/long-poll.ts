/**
 * Long polls of core, over and over: what core answers is its state, all of it each time, so that
 * nothing is lost with an answer.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../proto/common/log.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import { isSuperseded } from './renewals.ts';

/** Source: AwaitReleasesRequest.wait_ms. */
export const WAIT_MS = 25_000;
/** Ours: the answer's own way, beyond the wait. */
const ANSWER_MS = 10_000;
const PAUSE_MIN_MS = 100;
const PAUSE_MAX_MS = 2_000;

export type Following = { call: CallOptions; log: Log; signal: AbortSignal };

/** Settles when the signal aborts, or when this instance is superseded. */
export async function follow(
  what: string,
  { call, log, signal }: Following,
  ask: (within: CallOptions) => Promise<void>,
): Promise<void> {
  let pauseMs = PAUSE_MIN_MS;
  while (!signal.aborted) {
    try {
      await ask({ ...call, signal, timeoutMs: WAIT_MS + ANSWER_MS });
      pauseMs = PAUSE_MIN_MS;
    } catch (error) {
      if (signal.aborted || isSuperseded(error)) return;
      log.warn({ error: String(error) }, `cannot learn of ${what}`);
      await sleep(pauseMs, undefined, { signal }).catch(() => {});
      pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS);
    }
  }
}
