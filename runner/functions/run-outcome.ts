/** How a run on a function host ends, as the runner's work reads it. */
import type { FromHost } from '../host/messages.ts';

export type Failure = {
  type: 'failure';
  code: 'WORKLOAD_ERROR' | 'INTERNAL_ERROR';
  name: string;
  message: string;
  stack: string;
};
/** How a run ended. `aborted`: by the caller's signal, whatever the handler did then. */
export type RunOutcome =
  | { type: 'result'; json: string | undefined }
  | { type: 'manifests'; json: string }
  | { type: 'aborted' }
  | Failure;

/**
 * A run that ended without a word. The tenant's code is what runs there: it is its failure unless
 * we know better.
 */
export const UNSAID: Failure = {
  type: 'failure',
  code: 'WORKLOAD_ERROR',
  name: '',
  message: 'the handler ended without an outcome',
  stack: '',
};

/** What a host told, as it is taken. */
export function outcomeOf(
  message: Exclude<FromHost, { type: 'ready' | 'log' | 'done' }>,
): RunOutcome {
  if (message.type !== 'error') return message;
  const { name, message: text, stack } = message;
  return { type: 'failure', code: 'WORKLOAD_ERROR', name, message: text, stack };
}
