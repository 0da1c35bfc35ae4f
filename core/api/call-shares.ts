/**
 * Calls of all projects that are under way, waits included, in shares by project: one project's
 * flood leaves the store's queue, and the memory of what waits, to another.
 */
import { Fault } from '../../proto/rpc/errors.ts';
import { openShares } from '../../proto/sharing/shares.ts';
import type { Caller } from './authentication.ts';

/**
 * Ours: as many operations as may wait for the store (core/store/thread.ts); one project has half.
 */
const CALLS_MAX = 4_096;

/** A place until it is disposed of. Throws CONCURRENCY_LIMIT past the project's share. */
export type EnterCall = (caller: Caller) => Disposable;

export function callShares(): EnterCall {
  const shares = openShares(CALLS_MAX);
  return (caller) => {
    if (caller.kind !== 'project') return { [Symbol.dispose]: () => {} };
    const { projectId } = caller;
    if (!shares.acquire(projectId, 1)) {
      const message = 'Too many requests of this project are under way. Retry the request.';
      throw new Fault('CONCURRENCY_LIMIT', message);
    }
    return { [Symbol.dispose]: () => shares.release(projectId, 1) };
  };
}
