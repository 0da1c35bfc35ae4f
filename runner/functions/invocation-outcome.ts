/**
 * The outcome of an invocation: the handler's value or failure, its end by time limit, cancel or a
 * lost browser, or the reason why it could not start. Pure but for one log line.
 */

import type { Log } from '../../proto/common/log.ts';
import type {
  CompleteInvocationRequest,
  CompleteInvocationRequest_Failure,
} from '../../proto/gen/tabern/v1/runners.pb.ts';
import { lossReason } from '../browser/launch.ts';
import { UnsupportedSessionError } from '../common/unsupported-session.ts';
import type { Session } from '../sessions/session.ts';
import type { InvokeOutcome } from './hosts.ts';

export type Outcome = CompleteInvocationRequest['outcome'];

export const COMPLETED = 'COMPLETED';

export function codeOf(outcome: Outcome): string {
  return outcome?.$case === 'failure' ? outcome.value.code : COMPLETED;
}

/** Signals that end it before its handler has ended. */
type Cut = { released: AbortSignal; deadline: AbortSignal };

export function outcomeOf(said: InvokeOutcome, session: Session, cut: Cut): Outcome {
  if (said.type === 'result') {
    return said.json === undefined ? undefined : { $case: 'resultsJson', value: said.json };
  }
  if (said.type === 'aborted') {
    return cutShort(cut) ?? failure('INTERNAL_ERROR', 'the runner ended before the handler did');
  }
  const { code, name, message, stack } = said;
  if (!session.lost.aborted) return failure(code, message, { name, stack });
  const { chrome } = session;
  // the browser exceeded its limit because of the invocation's own pages
  const isOwn = chrome.exitReason() !== undefined;
  const loss = isOwn ? lossReason(chrome) : 'the browser was lost during the run';
  return failure(isOwn ? code : 'INTERNAL_ERROR', `${loss}: ${message}`, { name, stack });
}

const TIMED_OUT = 'the invocation did not end within its time limit';
const CANCELLED = 'the invocation was cancelled';

/** By cancellation or by the time limit. */
function cutShort({ released, deadline }: Cut): Outcome {
  if (released.aborted) return failure('WORKLOAD_ERROR', CANCELLED);
  return deadline.aborted ? failure('TIMED_OUT', TIMED_OUT) : undefined;
}

/** The failure of an invocation whose handler did not run. */
export function failureOf(
  error: unknown,
  { signal, log, ...cut }: Cut & { signal: AbortSignal; log: Log },
): Outcome {
  const ended = cutShort(cut);
  if (ended) return ended;
  if (signal.aborted) return failure('INTERNAL_ERROR', 'the runner ended before the handler began');
  if (error instanceof UnsupportedSessionError) return failure('INTERNAL_ERROR', error.message);
  log.error({ err: error }, 'an invocation could not start');
  return failure('INTERNAL_ERROR', 'the browser or the function could not be started');
}

function failure(
  code: CompleteInvocationRequest_Failure['code'],
  message: string,
  { name = '', stack = '' } = {},
): Outcome {
  return { $case: 'failure', value: { code, message, name, stack } };
}

/** For clients that are still connected then. */
export function endReason({ released, deadline }: Cut): string {
  if (released.aborted) return CANCELLED;
  return deadline.aborted ? TIMED_OUT : 'the runner is ending';
}
