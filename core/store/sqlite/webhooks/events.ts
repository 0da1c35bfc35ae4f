/** Events and their listeners in SQLite. The outbox: core/store/operations/events.ts. */
import { TEST_TYPE } from '../../../delivery/transitions.ts';
import type { EventStatements } from '../../operations/events.ts';
import type { HeardEvent, ListenerOps } from '../../types/deliveries.ts';
import { frequentQueries, queries, statements } from '../engine/statements.ts';
import { found } from '../engine/steps.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';
import { dayCounter } from './days.ts';

export const eventStatements = preparedOnce((tx: Tx): EventStatements => {
  const { rows, exists, write } = statements(tx);
  const insertEvent = frequentQueries(tx).changes(`
    INSERT INTO events (id, project_id, type, resource_id, body, created_at)
    VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (resource_id, type) WHERE type <> '${TEST_TYPE}' DO NOTHING`);
  const insertPending = write(`
    INSERT INTO deliveries (event_id, webhook_id, state, due, created_at)
    VALUES (?, ?, 'pending', ?, ?)`);
  const insertSkipped = write(`
    INSERT INTO deliveries (event_id, webhook_id, state, reason, created_at, done_at)
    VALUES (?, ?, 'skipped', 'endpoint_disabled', ?, ?)`);
  const countDay = dayCounter(tx);
  const setDue = write(`
    UPDATE webhooks SET next_due = MIN(COALESCE(next_due, ?), ?) WHERE id = ?`);
  return {
    // Index webhooks_by_project; a project has at most 100.
    subscribed: rows(`
      SELECT id, status FROM webhooks
      WHERE project_id = ? AND status <> 'deleted'
        AND EXISTS (SELECT 1 FROM json_each(event_types) WHERE value = ?)`),
    hasListener: exists('SELECT 1 FROM listeners WHERE project_id = ? AND until > ?'),
    insert({ id, projectId, type, resourceId, body, at }, deliveries) {
      if (insertEvent(id, projectId, type, resourceId, body, at) === 0) return found(false);
      for (const { webhookId, state } of deliveries) {
        const insert = state === 'pending' ? insertPending : insertSkipped;
        insert(id, webhookId, at, at);
      }
      return found(true);
    },
    countSkipped: (webhookId, at) => countDay(webhookId, at, { lost: 1 }),
    setDue: (webhookId, at) => setDue(at, at, webhookId),
  };
});

export function listenerOps(tx: Tx): ListenerOps {
  const { rows, number, write } = queries(tx);
  const register = write(`
    INSERT INTO listeners (project_id, until) VALUES (?, ?)
    ON CONFLICT (project_id) DO UPDATE SET until = MAX(until, excluded.until)`);
  const last = number<[]>('SELECT MAX(seq) FROM events');
  // Index events_by_project.
  const page = rows<[string, number, number], HeardEvent>(`
    SELECT seq, id, type, body FROM events INDEXED BY events_by_project
    WHERE project_id = ? AND seq > ? AND type <> '${TEST_TYPE}'
    ORDER BY seq LIMIT ?`);
  return {
    listen({ projectId, until }) {
      register(projectId, until);
      return last();
    },
    eventsAfter: ({ projectId, after, limit }) => {
      return { events: page(projectId, after, limit), isEarly: false };
    },
  };
}
