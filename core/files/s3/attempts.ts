/** Repeated requests to a bucket that is busy or restarts. */
import { retry } from '../../../proto/common/retry.ts';
import { S3Error } from './errors.ts';

/** Ours. Longer outages are the caller's. */
const BUSY = { firstMs: 100, maxMs: 1_000, limitMs: 3_000 };
/** Messages of fetch: for a request, and for the body of its answer. */
const BROKEN: readonly string[] = ['fetch failed', 'terminated'];

export function trying<T>(attempt: () => Promise<T>): Promise<T> {
  return retry(attempt, { ...BUSY, isRetryable });
}

/** Answers of a server that is busy or restarts, and broken connections. */
function isRetryable(error: unknown): boolean {
  if (error instanceof S3Error) return error.status >= 500 || error.status === 429;
  return isOfConnection(error) && (error as Error).name !== 'TimeoutError';
}

/** An error of fetch, and none of the bytes' source. */
export function isOfConnection(error: unknown): boolean {
  const { name, message } = error as Error;
  return (error instanceof TypeError && BROKEN.includes(message)) || name === 'TimeoutError';
}
