/**
 * Events and their listeners in PostgreSQL. The outbox: core/store/operations/events.ts. The number
 * of an event is made of its transaction's number, so that numbers are in the order in which events
 * become visible: a listener reads those of transactions before the oldest that still runs. A
 * sequence would count in the order of inserts, and a listener that has read 8 would never read a 7
 * that is committed later.
 */
import { TEST_TYPE } from '../../../delivery/transitions.ts';
import type { EventStatements } from '../../operations/events.ts';
import type { HeardEvent, ListenerOps } from '../../types/deliveries.ts';
import { statements } from '../engine/statements.ts';
import { found, type InReads, mapped } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { dayCounter } from './days.ts';
import { receiversOf, subscribedIn, type Webhook } from './receivers.ts';

/** Events of one transaction: its number is shifted by 12 bits. */
const EVENTS_MAX = 1 << 12;

/** The number of an event, of its place `@n` among those of its transaction. */
export const SEQ = '((pg_current_xact_id()::TEXT::BIGINT << 12) + @n::INTEGER)';
/**
 * The first number that is not readable yet: of the oldest transaction that still runs in this
 * database. Those of other databases on the server may run for hours, and write no event. A
 * process shows the lower 32 bits of its transaction's number.
 */
const FIRST_HIDDEN = `
  SELECT MIN(first) << 12 FROM (
    SELECT pg_snapshot_xmax(pg_current_snapshot())::TEXT::BIGINT AS first
    UNION ALL
    SELECT next - age FROM (
      SELECT next, (next - backend_xid::TEXT::BIGINT) & 4294967295 AS age
      FROM pg_stat_activity,
        (SELECT pg_snapshot_xmax(pg_current_snapshot())::TEXT::BIGINT AS next) AS snapshot
      WHERE backend_xid IS NOT NULL
        AND datid = (SELECT oid FROM pg_database WHERE datname = current_database())
    ) AS running WHERE age BETWEEN 1 AND 2147483647
  ) AS numbers`;

const COUNTED = {};

/** Places of events in the running operation. */
export function eventCounter(tx: Tx): () => number {
  return () => {
    const events = tx.memory(COUNTED, () => ({ count: 0 }));
    if (events.count === EVENTS_MAX) throw new Error('too many events in one transaction');
    return events.count++;
  };
}

export function eventStatements(tx: Tx): EventStatements {
  const { rows, exists, returned, write } = statements(tx);
  const nextPlace = eventCounter(tx);
  const insert = returned<[object], { isNew: boolean }>(`
    WITH event AS (
      INSERT INTO events (seq, id, project_id, type, resource_id, body, created_at)
      VALUES (${SEQ}, @id, @projectId, @type, @resourceId, @body, @at)
      ON CONFLICT (resource_id, type) WHERE type <> '${TEST_TYPE}' DO NOTHING
      RETURNING id),
    inserted AS (
      INSERT INTO deliveries (event_id, webhook_id, state, reason, due, created_at, done_at)
      SELECT event.id, one.webhook_id, one.state,
        CASE one.state WHEN 'skipped' THEN 'endpoint_disabled' END,
        CASE one.state WHEN 'pending' THEN @at::BIGINT END, @at::BIGINT,
        CASE one.state WHEN 'skipped' THEN @at::BIGINT END
      FROM event, unnest(@webhookIds::TEXT[], @states::TEXT[]) AS one (webhook_id, state))
    SELECT EXISTS (SELECT 1 FROM event) AS "isNew"`);
  const countDay = dayCounter(tx);
  const setDue = write<[object]>(`
    UPDATE webhooks SET next_due = LEAST(next_due, @at::BIGINT) WHERE id = @webhookId`);
  // Index webhooks_by_project; a project has at most 100.
  const subscribed = rows<[string, string], Webhook>(`
    SELECT id, status FROM webhooks
    WHERE project_id = ? AND status <> 'deleted' AND jsonb_exists(event_types::JSONB, ?)`);
  const hasListener = exists<[string, number]>(
    'SELECT 1 FROM listeners WHERE project_id = ? AND until > ?',
  );
  return {
    subscribed(projectId, type) {
      const known = receiversOf(tx).get(projectId);
      return known ? found(subscribedIn(known, type)) : subscribed(projectId, type);
    },
    hasListener(projectId, at) {
      const known = receiversOf(tx).get(projectId);
      return known ? found((known.heardUntil ?? 0) > at) : hasListener(projectId, at);
    },
    insert(event, deliveries) {
      const webhookIds = deliveries.map(({ webhookId }) => webhookId);
      const states = deliveries.map(({ state }) => state);
      const made = insert({ ...event, n: nextPlace(), webhookIds, states });
      return mapped(made, ({ isNew }) => isNew);
    },
    countSkipped: (webhookId, at) => countDay(webhookId, at, { lost: 1 }),
    /** A webhook of many events is locked shortly. */
    setDue: (webhookId, at) => tx.atEnd(`2 ${webhookId}`, () => setDue({ webhookId, at })),
  };
}

/**
 * The last number is that of events before the first hidden one, which is found by a statement of
 * its own: what had ended then is visible to the next one.
 */
export function listenerOps(tx: Tx): InReads<ListenerOps> {
  const { rows, number, write } = statements(tx);
  const register = write(`
    INSERT INTO listeners (project_id, until) VALUES (?, ?)
    ON CONFLICT (project_id) DO UPDATE SET until = GREATEST(listeners.until, excluded.until)`);
  const firstHidden = number<[]>(FIRST_HIDDEN);
  // Index events_by_project.
  const page = rows<[string, number, number], HeardEvent>(`
    SELECT seq, id, type, body FROM events
    WHERE project_id = ? AND seq > ? AND type <> '${TEST_TYPE}'
    ORDER BY seq LIMIT ?`);
  return {
    *listen({ projectId, until }) {
      register(projectId, until);
      return (yield* firstHidden()) - 1;
    },
    *eventsAfter({ projectId, after, limit }) {
      const hidden = yield* firstHidden();
      const found = yield* page(projectId, after, limit);
      const events = found.filter(({ seq }) => seq < hidden);
      return { events, isEarly: events.length < found.length };
    },
  };
}
