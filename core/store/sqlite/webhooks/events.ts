/**
 * The outbox: an event and one delivery per subscribed webhook, written in the transaction that
 * moves the resource's status.
 * A crash leaves both or neither. A webhook that is disabled gets a delivery that is skipped
 * already, so that it can be replayed; when no webhook subscribes and nobody listens, nothing is
 * written.
 */

import { newId } from '../../../common/ids.ts';
import { type Event, envelope } from '../../../delivery/envelope.ts';
import { TEST_TYPE } from '../../../delivery/transitions.ts';
import type { HeardEvent, ListenerOps } from '../../types/deliveries.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';

/** Writes the event. A second event of the same type for the same resource is ignored. */
export function emitEvent(tx: Tx, event: Omit<Event, 'id'>): void {
  const sql = statementsOf(tx);
  const { type, projectId, resourceId, at } = event;
  const subscribed = sql.subscribed.all(projectId, type);
  const isHeard = sql.listener.get(projectId, at) !== undefined;
  if (subscribed.length === 0 && !isHeard) return;

  const id = newId();
  const body = envelope({ ...event, id });
  if (sql.insertEvent.run(id, projectId, type, resourceId, body, at).changes === 0) return;
  if (isHeard) tx.wake(`events:${projectId}`);
  for (const webhook of subscribed) {
    if (webhook.status === 'enabled') {
      sql.insertPending.run(id, webhook.id, at, at);
      sql.dueNow.run(at, at, webhook.id);
    } else {
      sql.insertSkipped.run(id, webhook.id, at, at);
    }
  }
  if (subscribed.some((webhook) => webhook.status === 'enabled')) tx.wake('deliveries');
}

const statementsOf = preparedOnce(({ db }: Tx) => {
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
    dueNow: db.prepare<[number, number, string]>(`
      UPDATE webhooks SET next_due = MIN(COALESCE(next_due, ?), ?) WHERE id = ?`),
  };
});

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
