/** Events and their listeners in SQLite. The outbox: core/store/operations/events.ts. */
import { TEST_TYPE } from '../../../delivery/transitions.ts';
import {
  type EventStatements,
  emitEvent as emitInSteps,
  type NewEvent,
} from '../../operations/events.ts';
import type { HeardEvent, ListenerOps } from '../../types/deliveries.ts';
import { found, run } from '../engine/steps.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';

export const eventStatements = preparedOnce((tx: Tx): EventStatements => {
  const sql = prepare(tx);
  return {
    subscribed: (projectId, type) => found(sql.subscribed.all(projectId, type)),
    hasListener: (projectId, at) => found(sql.listener.get(projectId, at) !== undefined),
    insertEvent({ id, projectId, type, resourceId, body, at }) {
      const { changes } = sql.insertEvent.run(id, projectId, type, resourceId, body, at);
      return found(changes > 0);
    },
    insertPending: (id, webhookId, at) => void sql.insertPending.run(id, webhookId, at, at),
    insertSkipped: (id, webhookId, at) => void sql.insertSkipped.run(id, webhookId, at, at),
    setDue: (webhookId, at) => void sql.setDue.run(at, at, webhookId),
  };
});

/** Writes an event without a change of a resource: for tests. */
export function emitEvent(tx: Tx, event: NewEvent): void {
  run(emitInSteps(eventStatements(tx), tx, event));
}

function prepare({ db }: Tx) {
  return {
    // Index webhooks_by_project; a project has at most 100.
    subscribed: db.prepare<[string, string], { id: string; status: 'enabled' | 'disabled' }>(`
      SELECT id, status FROM webhooks
      WHERE project_id = ? AND status <> 'deleted'
        AND EXISTS (SELECT 1 FROM json_each(event_types) WHERE value = ?)`),
    listener: db.prepare<[string, number], object>(
      'SELECT 1 FROM listeners WHERE project_id = ? AND until > ?',
    ),
    insertEvent: db.prepare<[string, string, string, string, Buffer, number]>(`
      INSERT INTO events (id, project_id, type, resource_id, body, created_at)
      VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT (resource_id, type) WHERE type <> '${TEST_TYPE}' DO NOTHING`),
    insertPending: db.prepare<[string, string, number, number]>(`
      INSERT INTO deliveries (event_id, webhook_id, state, due, created_at)
      VALUES (?, ?, 'pending', ?, ?)`),
    insertSkipped: db.prepare<[string, string, number, number]>(`
      INSERT INTO deliveries (event_id, webhook_id, state, reason, created_at, done_at)
      VALUES (?, ?, 'skipped', 'endpoint_disabled', ?, ?)`),
    setDue: db.prepare<[number, number, string]>(`
      UPDATE webhooks SET next_due = MIN(COALESCE(next_due, ?), ?) WHERE id = ?`),
  };
}

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
