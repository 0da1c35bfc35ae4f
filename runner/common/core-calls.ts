/** Retries the runner's calls to core that fail while core restarts. */
import { retry } from '../../proto/common/retry.ts';
import { Fault } from '../../proto/rpc/errors.ts';

/** Ours: 12 s of pauses. A lease without renewal for 15 s is lost anyway. */
const RESTART = { firstMs: 100, maxMs: 4_000, limitMs: 12_000 };

/**
 * Retries an idempotent call for as long as a restart of core takes. Rejects with the error of the
 * last attempt.
 */
export function retryCall<T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  return retry(call, { ...RESTART, signal, isRetryable: isRestart });
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
