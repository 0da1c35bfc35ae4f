/** A state as a shape, a colour and a word. */
import type { RunStatus, Session } from '../data/types.ts';

export type StateName = 'running' | 'done' | 'failed' | 'waiting';

const SHAPES: Record<StateName, string> = {
  running: 'M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3z',
  done: 'M6.7 12.2 2.6 8.1l1.3-1.3 2.8 2.8 5.4-5.4 1.3 1.3z',
  failed: 'm4.3 3 3.7 3.7L11.7 3 13 4.3 9.3 8l3.7 3.7-1.3 1.3L8 9.3 4.3 13 3 11.7 6.7 8 3 4.3z',
  waiting: 'M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 4a4 4 0 1 0 0 8V4z',
};
const OF_RUN: Record<RunStatus, [StateName, string]> = {
  PENDING: ['waiting', 'Waiting'],
  RUNNING: ['running', 'Running'],
  COMPLETED: ['done', 'Completed'],
  FAILED: ['failed', 'Failed'],
};

export function State({ name, word }: { name: StateName; word: string }) {
  return (
    <span class={`state ${name}`}>
      <Shape name={name} />
      {word}
    </span>
  );
}

/** The shape alone, beside a text that says the same. */
export function Shape({ name }: { name: StateName }) {
  return (
    <svg class={`shape ${name}`} viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
      <path d={SHAPES[name]} fill="currentColor" />
    </svg>
  );
}

export function SessionState({ session }: { session: Session }) {
  const [name, word] = stateOfSession(session);
  return <State name={name} word={word} />;
}

export function RunState({ status }: { status: RunStatus }) {
  const [name, word] = OF_RUN[status] ?? ['waiting', status];
  return <State name={name} word={word} />;
}

export function stateOfSession({
  status,
  isReleased,
}: Pick<Session, 'status' | 'isReleased'>): [StateName, string] {
  switch (status) {
    case 'PENDING':
      return ['waiting', 'Starting'];
    case 'RUNNING':
      return isReleased ? ['waiting', 'Ending'] : ['running', 'Running'];
    case 'COMPLETED':
      return ['done', 'Ended'];
    case 'TIMED_OUT':
      return ['failed', 'Timed out'];
    case 'ERROR':
      return ['failed', 'Failed'];
  }
}
