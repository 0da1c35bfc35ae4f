/** Repeated long polls of core, retried with a growing pause while core cannot be reached. */
import type { Log } from '../../proto/common/log.ts';
import { retry } from '../../proto/common/retry.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import { isSuperseded } from './renewals.ts';

/** Source: AwaitReleasesRequest.wait_ms, LeaseWorkRequest.wait_ms. */
export const WAIT_MS = 25_000;
/** Ours: for the transfer of the answer, in addition to the wait. */
const ANSWER_MS = 10_000;
const PAUSES = { firstMs: 100, maxMs: 2_000 };

export type Following = {
  call: CallOptions;
  log: Log;
  signal: AbortSignal;
  /** Aborts when the poll in progress is the last one. */
  last?: AbortSignal;
};

/**
 * Resolves when the signal aborts, after the last poll, or when this instance is superseded.
 */
export async function follow(
  what: string,
  { call, log, signal, last }: Following,
  poll: (within: CallOptions) => Promise<void>,
): Promise<void> {
  const attempt = () => poll({ ...call, signal, timeoutMs: WAIT_MS + ANSWER_MS });
  const isOver = () => signal.aborted || last?.aborted === true;
  const isRetryable = (error: unknown) => !isSuperseded(error) && !isOver();
  const onRetry = (error: unknown) => log.warn({ error: String(error) }, `polling ${what} failed`);
  while (!isOver()) {
    try {
      await retry(attempt, { ...PAUSES, signal, isRetryable, onRetry });
    } catch (error) {
      if (isOver() || isSuperseded(error)) return;
      throw error;
    }
  }
}
