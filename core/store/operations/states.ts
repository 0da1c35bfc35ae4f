/**
 * The states of work and of deliveries, and the transitions that are allowed, as values: state ->
 * next states. Ended work has none. Statements that change a state take their conditions from here.
 */
import type { DeliveryState } from '../types/deliveries.ts';
import type { BuildStatus } from '../types/functions.ts';
import type { InvocationStatus } from '../types/invocations.ts';
import type { SessionStatus } from '../types/sessions.ts';

type Transitions<State extends string> = Readonly<Record<State, readonly State[]>>;

/** PENDING ends by a cancel, or without a free runner. */
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

/**
 * `in_flight`: an attempt is under way. An ended delivery is `pending` again by a redelivery, and
 * `delivered` by the late report of a success.
 */
export const DELIVERY: Transitions<DeliveryState> = {
  pending: ['in_flight', 'delivered', 'skipped', 'cancelled'],
  in_flight: ['pending', 'delivered', 'exhausted', 'skipped', 'cancelled'],
  delivered: ['pending'],
  exhausted: ['pending', 'delivered'],
  skipped: ['pending', 'delivered'],
  cancelled: ['pending', 'delivered'],
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

/** Deliveries still to be sent. */
export const OPEN_DELIVERY: readonly DeliveryState[] = statesBefore(DELIVERY, 'cancelled');

function statesOf<State extends string>(transitions: Transitions<State>): State[] {
  return Object.keys(transitions) as State[];
}
