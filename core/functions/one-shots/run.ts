/**
 * One one-shot: an invocation of the service's own function, accepted like that of any function, by
 * the same queue and limits. The caller waits for its end. When the caller leaves, it is cancelled,
 * and its result is not kept.
 */
import type { Log } from '../../../proto/common/log.ts';
import type { OneShotParams } from '../../../proto/one-shots/messages.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { type Call, throwIfOver } from '../../../proto/rpc/local.ts';
import type { ProjectCaller } from '../../api/interceptors.ts';
import { longPoll } from '../../api/long-poll.ts';
import { BUILT_IN } from '../../common/built-in.ts';
import type { Quotas } from '../../projects/quotas.ts';
import { logEnd } from '../../sessions/ended-sessions.ts';
import type { InvocationRow } from '../../store/types/invocations.ts';
import type { SessionParams } from '../../validation/session-params.ts';
import { checkPatterns, type NewInvocationDeps, newInvocation } from '../new-invocation.ts';
import { type OneShot, oneShotOf } from './outcome.ts';

/** Ours: the start of a browser and of a host, and the end of both, on a busy machine. */
const MARGIN_MS = 20_000;

/** Ours: how long it may wait for a runner; no client waits longer than that and its page. */
const WAIT_MS = 30_000;

export type RunDeps = NewInvocationDeps & {
  version: () => Promise<string>;
  quotas: Pick<Quotas, 'checkResults'>;
  log: Log;
  closing: AbortSignal;
};

/** Throws the Fault of its failure. */
export async function runOneShot(
  deps: RunDeps,
  { params, session }: { params: OneShotParams; session: SessionParams },
  caller: ProjectCaller,
): Promise<OneShot> {
  const { store, now } = deps;
  const { projectId, call } = caller;
  await deps.quotas.checkResults(projectId); // stored until the caller reads it
  await checkPatterns(deps, projectId, { session, prefix: '' });
  const { timeoutMs } = params;
  const wanted = {
    functionId: BUILT_IN.functionId,
    versionId: await deps.version(),
    params: JSON.stringify(params),
    session,
    timeoutMs: timeoutMs + MARGIN_MS,
    waitMs: WAIT_MS,
  };
  const { id } = await store.acceptInvocation(await newInvocation(deps, wanted, caller));
  const waitMs = WAIT_MS + timeoutMs + MARGIN_MS;
  const row = await ended(deps, { id, projectId }, { call, waitMs });
  if (row !== undefined) return oneShotOf(row);
  const cancelled = await store.cancelInvocation({ id, projectId, at: now() });
  if (cancelled?.session !== undefined) logEnd(deps.log, cancelled.session);
  await store.takeOneShot({ id, projectId }); // it may have ended since: nobody reads its result
  throwIfOver(call);
  if (deps.closing.aborted) throw new Fault('DRAINING', 'The service is shutting down.');
  throw new Fault('PAGE_TIMEOUT', 'The page was not ready in time.');
}

/** Undefined when the caller left, the wait is over, or core closes. */
async function ended(
  { store, closing }: RunDeps,
  one: { id: string; projectId: string },
  { call, waitMs }: { call: Call; waitMs: number },
): Promise<InvocationRow | undefined> {
  return await longPoll(store, `invocation:${one.id}`, () => store.takeOneShot(one), {
    call,
    closing,
    waitMs,
    maxMs: waitMs,
    isDone: (row) => row !== undefined,
  });
}
