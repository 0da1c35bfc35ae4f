/** Attempts of an operation: how many, how far apart, and what ends them. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type RetryOptions, retry } from '../../../proto/common/retry.ts';
import { errorOf } from '../../support/fault.ts';

const test = suite('proto/common/retry');
const QUICK: RetryOptions = { firstMs: 1, maxMs: 2, isRetryable: () => true };

/** An operation that fails so many times. */
function failing(times: number) {
  const errors: Error[] = [];
  const attempt = async (): Promise<string> => {
    if (errors.length >= times) return 'done';
    const error = new Error(`failure ${errors.length + 1}`);
    errors.push(error);
    throw error;
  };
  return { attempt, errors };
}

test('the first success is the result, and each failure before it is reported', async () => {
  const { attempt, errors } = failing(3);
  const reported: unknown[] = [];
  const onRetry = (error: unknown) => void reported.push(error);
  assert.is(await retry(attempt, { ...QUICK, onRetry }), 'done');
  assert.is(errors.length, 3);
  assert.equal(reported, errors);
});

test('an error that is not retryable ends it at once', async () => {
  const { attempt, errors } = failing(3);
  const isRetryable = (error: unknown) => (error as Error).message !== 'failure 2';
  assert.is(await errorOf(retry(attempt, { ...QUICK, isRetryable })), errors[1]);
  assert.is(errors.length, 2);
});

test('the pauses double up to the longest one', async () => {
  const { attempt } = failing(5);
  const starts: number[] = [];
  const timed = (): Promise<string> => {
    starts.push(performance.now());
    return attempt();
  };
  await retry(timed, { ...QUICK, firstMs: 10, maxMs: 40 });
  const pauses = starts.slice(1).map((at, index) => at - (starts[index] ?? 0));
  for (const [index, ms] of [10, 20, 40, 40, 40].entries()) {
    assert.ok((pauses[index] ?? 0) >= ms - 2, `pause ${index}: ${pauses[index]} of ${ms} ms`);
  }
});

test("at the limit of the pauses the last attempt's error is thrown", async () => {
  const { attempt, errors } = failing(Number.POSITIVE_INFINITY);
  const limited = { ...QUICK, firstMs: 1, maxMs: 4, limitMs: 10 };
  const error = await errorOf(retry(attempt, limited));
  assert.is(errors.length, 5); // after pauses of 1, 2, 4 and 3 ms
  assert.is(error, errors.at(-1));
});

/** On a busy machine a short attempt lasts tens of milliseconds. */
const LASTING_MS = 600;

test('after a long attempt the pauses begin again', async () => {
  const { attempt } = failing(4);
  const pauses: number[] = [];
  let attempts = 0;
  const lasting = async (): Promise<string> => {
    attempts += 1;
    if (attempts === 3) await new Promise((resolve) => setTimeout(resolve, LASTING_MS));
    return attempt();
  };
  const onRetry = (_: unknown, pauseMs: number) => void pauses.push(pauseMs);
  await retry(lasting, { ...QUICK, maxMs: 9, stableMs: LASTING_MS - 50, onRetry });
  assert.equal(pauses, [1, 2, 1, 2]);
});

test('a signal ends a pause at once, and no attempt follows', async () => {
  const { attempt, errors } = failing(Number.POSITIVE_INFINITY);
  const ending = new AbortController();
  const onRetry = () => setImmediate(() => ending.abort());
  const long = { ...QUICK, firstMs: 1e6, maxMs: 1e6, onRetry, signal: ending.signal };
  assert.is(await errorOf(retry(attempt, long)), errors[0]);
  assert.is(errors.length, 1);
});

test('a failure after the signal has aborted is not retried', async () => {
  const { attempt, errors } = failing(2);
  await errorOf(retry(attempt, { ...QUICK, signal: AbortSignal.abort() }));
  assert.is(errors.length, 1);
});

test.run();
