/**
 * Why sessions end: one sentence for each cause, whoever ends the session. Clients receive it with
 * the close, the API has it as `endReason`, and the log repeats it. The guide has the table of all
 * (gateway/web/docs/guide/sessions.md, "When a session ends").
 */
export const END_REASONS = {
  released: 'the session was released',
  left: 'its last client has left',
  timedOut: 'session timed out',
  unvisited: 'nobody connected in time',
  browserLost: 'the browser was lost',
  browserFailed: 'the browser could not be started',
  browserLate: 'the browser was not ready in time',
  noRunner: 'no runner was free in time',
  runnerLost: 'the runner was lost',
  shutdown: 'the service is shutting down',
} as const;

/** Of sessions of invocations, beside those above. */
export const INVOCATION_END_REASONS = {
  ended: 'the invocation has ended',
  cancelled: 'the invocation was cancelled',
  timedOut: 'the invocation did not end within its time limit',
  notStarted: 'the browser or the function could not be started',
} as const;

type InvocationEnd = {
  /** Of its failure; undefined when its handler returned. */
  code: string | undefined;
  message: string;
  /** By a user: a handler may throw an error with the same text. */
  isCancelled: boolean;
  /** Why its browser ended by itself. */
  browserLoss: string | undefined;
};
type SessionEnd = { status: 'COMPLETED' | 'TIMED_OUT' | 'ERROR'; reason: string };

/** How the session of an invocation ends. A handler that throws is no failure of its browser. */
export function endOfInvocation({
  code,
  message,
  isCancelled,
  browserLoss,
}: InvocationEnd): SessionEnd {
  if (browserLoss !== undefined) return { status: 'ERROR', reason: browserLoss };
  const { ended, cancelled } = INVOCATION_END_REASONS;
  if (code === undefined || code === 'WORKLOAD_ERROR') {
    return { status: 'COMPLETED', reason: isCancelled ? cancelled : ended };
  }
  return { status: code === 'TIMED_OUT' ? 'TIMED_OUT' : 'ERROR', reason: message };
}
