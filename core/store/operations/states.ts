/**
 * The states of work and the transitions that are allowed, as values: state -> next states. An
 * ended state has none. Statements that change a state take their conditions from here.
 */
import type { BuildStatus } from '../types/functions.ts';
import type { InvocationStatus } from '../types/invocations.ts';
import type { SessionStatus } from '../types/sessions.ts';

type Transitions<State extends string> = Readonly<Record<State, readonly State[]>>;

/** PENDING ends by a cancel, or without a runner. */
export const INVOCATION: Transitions<InvocationStatus> = {
  PENDING: ['RUNNING', 'FAILED'],
  RUNNING: ['COMPLETED', 'FAILED'],
  COMPLETED: [],
  FAILED: [],
};

export const BUILD: Transitions<BuildStatus> = INVOCATION;

/** PENDING is COMPLETED by a release, TIMED_OUT or ERROR without a runner or a Chrome. */
export const SESSION: Transitions<SessionStatus> = {
  PENDING: ['RUNNING', 'COMPLETED', 'TIMED_OUT', 'ERROR'],
  RUNNING: ['COMPLETED', 'TIMED_OUT', 'ERROR'],
  COMPLETED: [],
  TIMED_OUT: [],
  ERROR: [],
};

/**
 * A job's lease. `offered`: leased, and its work PENDING until the first renewal (of a session:
 * until StartSession). `running`: never offered again. `gone`: the work has ended, the row is
 * deleted.
 */
export const LEASE: Transitions<'ready' | 'offered' | 'running' | 'gone'> = {
  ready: ['offered', 'gone'],
  offered: ['ready', 'running', 'gone'],
  running: ['gone'],
  gone: [],
};

/** The states from which `next` may follow. */
export function statesBefore<State extends string>(
  transitions: Transitions<State>,
  next: State,
): State[] {
  return statesOf(transitions).filter((state) => transitions[state].includes(next));
}

/** The states that have not ended. */
export function openStates<State extends string>(transitions: Transitions<State>): State[] {
  return statesOf(transitions).filter((state) => transitions[state].length > 0);
}

function statesOf<State extends string>(transitions: Transitions<State>): State[] {
  return Object.keys(transitions) as State[];
}
