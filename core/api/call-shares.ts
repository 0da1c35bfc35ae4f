/**
 * Calls in progress, waiting ones included, in shares by project: a flood of one project leaves the
 * store's queue, and the memory of waiting calls, to others.
 */
import { Fault } from '../../proto/rpc/errors.ts';
import { openShares } from '../../proto/sharing/shares.ts';
import type { Caller } from './authentication.ts';

/** Ours: the queue length of the store (core/store/thread.ts); one project may use half. */
const CALLS_MAX = 4_096;

/** A slot, held until disposed. Throws CONCURRENCY_LIMIT beyond the project's share. */
export type EnterCall = (caller: Caller) => Disposable;

export function callShares(): EnterCall {
  const shares = openShares(CALLS_MAX);
  return (caller) => {
    if (caller.kind !== 'project' && caller.kind !== 'share') return { [Symbol.dispose]: () => {} };
    const { projectId } = caller;
    if (!shares.acquire(projectId, 1)) {
      const message = 'Too many requests of this project are under way. Retry the request.';
      throw new Fault('CONCURRENCY_LIMIT', message);
    }
    return { [Symbol.dispose]: () => shares.release(projectId, 1) };
  };
}
