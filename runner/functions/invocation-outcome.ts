/**
 * The outcome of an invocation: the handler's value or failure, its end by time limit, cancel or a
 * lost browser, or the reason why it could not start. Pure but for one log line.
 */

import type { Log } from '../../proto/common/log.ts';
import type {
  CompleteInvocationRequest,
  CompleteInvocationRequest_Failure,
} from '../../proto/gen/tabern/v1/runners.pb.ts';
import {
  END_REASONS,
  endOfInvocation,
  INVOCATION_END_REASONS,
} from '../../proto/sessions/end-reasons.ts';
import { lossReason } from '../browser/launch.ts';
import { UnsupportedSessionError } from '../common/unsupported-session.ts';
import type { Session } from '../sessions/session.ts';
import type { InvokeOutcome } from './hosts.ts';

export type Outcome = CompleteInvocationRequest['outcome'];

export const COMPLETED = 'COMPLETED';
const SUCCESS = { code: undefined, message: '' };

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
    return cutShort(cut) ?? failure('INTERNAL_ERROR', shutdown);
  }
  const { code, name, message, stack } = said;
  if (!session.lost.aborted) return failure(code, message, { name, stack });
  const { chrome } = session;
  // the browser exceeded its limit because of the invocation's own pages
  const isOwn = chrome.exitReason() !== undefined;
  const failed = `${lossReason(chrome)}: ${message}`;
  return failure(isOwn ? code : 'INTERNAL_ERROR', failed, { name, stack });
}

const { shutdown, runnerLost } = END_REASONS;
const { cancelled, timedOut, notStarted } = INVOCATION_END_REASONS;

const CANCELLED = failure('WORKLOAD_ERROR', cancelled);

/** By cancellation or by the time limit. */
function cutShort({ released, deadline }: Cut): Outcome {
  if (released.aborted) return CANCELLED;
  return deadline.aborted ? failure('TIMED_OUT', timedOut) : undefined;
}

/** The failure of an invocation whose handler did not run. */
export function failureOf(
  error: unknown,
  { signal, log, ...cut }: Cut & { signal: AbortSignal; log: Log },
): Outcome {
  const ended = cutShort(cut);
  if (ended) return ended;
  if (signal.aborted) return failure('INTERNAL_ERROR', shutdown);
  if (error instanceof UnsupportedSessionError) return failure('INTERNAL_ERROR', error.message);
  log.error({ err: error }, 'an invocation could not start');
  return failure('INTERNAL_ERROR', notStarted);
}

/** Why its browser ended by itself. */
export function browserLossOf(session: Pick<Session, 'lost'> | undefined): string | undefined {
  return session?.lost.aborted ? (session.lost.reason as Error).message : undefined;
}

/** How its session has ended. */
export function sessionEndOf(outcome: Outcome, browserLoss: string | undefined) {
  const { code, message } = outcome?.$case === 'failure' ? outcome.value : SUCCESS;
  return endOfInvocation({ code, message, isCancelled: outcome === CANCELLED, browserLoss });
}

function failure(
  code: CompleteInvocationRequest_Failure['code'],
  message: string,
  { name = '', stack = '' } = {},
): Outcome {
  return { $case: 'failure', value: { code, message, name, stack } };
}

/** WebSocket close codes: RFC 6455 7.4.1. */
const NORMAL = 1000;
const GOING_AWAY = 1001;
const UNEXPECTED = 1011;

/** For clients that are still connected when it has ended. */
export const DONE = { code: NORMAL, reason: INVOCATION_END_REASONS.ended };

/** The same, when it is cut short. */
export function closeOf(cut: Cut & { lost: AbortSignal }): { code: number; reason: string } {
  if (cut.lost.aborted) return { code: UNEXPECTED, reason: runnerLost };
  if (cut.released.aborted) return { code: NORMAL, reason: cancelled };
  return { code: GOING_AWAY, reason: cut.deadline.aborted ? timedOut : shutdown };
}
