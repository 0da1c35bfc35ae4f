/** The log of sessions that core itself has ended; a runner logs the others in the same words. */
import type { Log } from '../../proto/common/log.ts';
import type { GivenUp } from '../store/types/leases.ts';
import type { EndedSession } from '../store/types/rows.ts';

export function logEnd(log: Log, { id: sessionId, status: end, reason }: EndedSession): void {
  log.info({ sessionId, end, reason }, 'a session has ended');
}

/** Of work that was given up. */
export function logEnds(log: Log, work: readonly GivenUp[]): void {
  for (const { session } of work) if (session !== undefined) logEnd(log, session);
}
