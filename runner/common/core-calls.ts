/** Retries the runner's calls to core that fail while core restarts, or is away. */
import { retry } from '../../proto/common/retry.ts';
import { Fault } from '../../proto/rpc/errors.ts';

/**
 * In milliseconds, of pauses. Ours: longer than core waits for a silent runner by default, and
 * below the ten minutes for which core accepts recordings after the end of their session.
 */
export const AWAY_MS = 540_000;
const AWAY = { firstMs: 100, maxMs: 4_000, limitMs: AWAY_MS };

/**
 * Retries an idempotent call while core is away, for AWAY_MS at most. Rejects with the error of the
 * last attempt.
 */
export function retryCall<T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  return retry(call, { ...AWAY, signal, isRetryable: isRestart });
}

/** Whether the same call may succeed later. */
export function isTransient(error: unknown): boolean {
  return isRestart(error) || (error instanceof Fault && error.reason === 'DEADLINE');
}

/**
 * Whether an idempotent call may succeed later, also when core does not know whether it stored the
 * call: outcomes, and log batches by their numbers. Core restarts after a failure of its storage.
 */
export function isRepeatable(error: unknown): boolean {
  return isTransient(error) || (error instanceof Fault && error.reason === 'OUTCOME_UNKNOWN');
}

function isRestart(error: unknown): boolean {
  return error instanceof Fault && error.row.retry === 'yes';
}
