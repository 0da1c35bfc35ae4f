/**
 * Async failure in a test. uvu's `assert.throws` is synchronous only, and given an async function
 * it ends the run.
 */
import { Fault } from '../../proto/rpc/errors.ts';

/**
 * The Fault that the promise rejects with. Throws when it resolves, or rejects with anything else.
 */
export async function faultOf(promise: Promise<unknown>): Promise<Fault> {
  const error = await errorOf(promise);
  if (error instanceof Fault) return error;
  throw new Error('rejected with what is not a Fault', { cause: error });
}

/**
 * The reasons of calls that were made at once: they may be answered in any order, and each has a
 * handler from the start.
 */
export async function reasonsOf(promises: readonly Promise<unknown>[]): Promise<string[]> {
  return (await Promise.all(promises.map(faultOf))).map(({ reason }) => reason);
}

/** The reason with which the promise rejects. Throws when it resolves. */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error('resolved, where a rejection was expected', { cause: value });
}
