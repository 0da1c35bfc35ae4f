/**
 * Listeners in SQLite. While one is registered, emitEvent keeps the project's events also when no
 * webhook subscribes; events.seq is the order of commit, and no number comes twice.
 */
import { TEST_TYPE } from '../../../delivery/transitions.ts';
import type { HeardEvent, ListenerOps } from '../../types/listeners.ts';
import type { Tx } from '../engine/transaction.ts';

export function listenerOps({ db }: Tx): ListenerOps {
  const register = db.prepare<[string, number]>(`
    INSERT INTO listeners (project_id, until) VALUES (?, ?)
    ON CONFLICT (project_id) DO UPDATE SET until = MAX(until, excluded.until)`);
  const last = db.prepare<[], number | null>('SELECT MAX(seq) FROM events').pluck();
  // Index events_by_project.
  const page = db.prepare<[string, number, number], HeardEvent>(`
    SELECT seq, id, type, body FROM events INDEXED BY events_by_project
    WHERE project_id = ? AND seq > ? AND type <> '${TEST_TYPE}'
    ORDER BY seq LIMIT ?`);

  return {
    listen({ projectId, until }) {
      register.run(projectId, until);
      return last.get() ?? 0;
    },
    eventsAfter: ({ projectId, after, limit }) => page.all(projectId, after, limit),
  };
}
