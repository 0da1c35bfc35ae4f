/**
 * Deliveries as people see them, in SQLite. A page follows one of three ways, each by an index: the
 * webhook's deliveries, those in one state, or those of one resource.
 */
import type {
  AttemptRow,
  DeliveriesWanted,
  DeliveryRow,
  DeliveryViewOps,
} from '../../types/deliveries.ts';
import type { Tx } from '../engine/transaction.ts';
import { webhookFinder } from './due.ts';

/** Of deliveries joined with events. */
export const DELIVERY_COLUMNS = `events.id AS id, webhook_id AS webhookId, type AS eventType,
  resource_id AS resourceId, state, reason, tries, due, events.created_at AS createdAt,
  done_at AS doneAt`;

/** `state` and `resourceId` choose the way, so they are not among the conditions here. */
const FILTERS = `
  webhook_id = @webhookId AND deliveries.id < @before
  AND (@eventType IS NULL OR type = @eventType)`;
const PAGE = 'ORDER BY deliveries.id DESC LIMIT @limit';

export function deliveryViewOps(tx: Tx): DeliveryViewOps {
  const { db } = tx;
  const webhook = webhookFinder(tx);
  // The unique index of (event_id, webhook_id).
  const rowOf = db
    .prepare<[string, string], number>(
      'SELECT id FROM deliveries WHERE event_id = ? AND webhook_id = ?',
    )
    .pluck();
  const one = db.prepare<[number], DeliveryRow>(`
    SELECT ${DELIVERY_COLUMNS}
    FROM deliveries JOIN events ON events.id = event_id WHERE deliveries.id = ?`);
  // Index attempts_by_delivery.
  const attempts = db.prepare<[number], AttemptRow>(`
    SELECT n, trigger, endpoint, started_at AS startedAt, ended_at AS endedAt, outcome, status,
      latency_ms AS latencyMs, error, response
    FROM attempts WHERE delivery_id = ? ORDER BY n`);
  const pages = preparePages(db);

  function page(wanted: DeliveriesWanted, before: number): DeliveryRow[] {
    const asked = { ...wanted, before, eventType: wanted.eventType ?? null };
    const { state = null, resourceId } = wanted;
    if (resourceId !== undefined) return pages.ofResource.all({ ...asked, state, resourceId });
    if (state === null) return pages.all.all(asked);
    return state === 'in_flight'
      ? pages.inFlight.all(asked)
      : pages.inState.all({ ...asked, state });
  }

  return {
    listDeliveries(wanted) {
      const { webhookId, projectId, before } = wanted;
      if (!webhook.get(webhookId, projectId)) return undefined;
      if (before === undefined) return page(wanted, Number.MAX_SAFE_INTEGER);
      const row = rowOf.get(before, webhookId);
      return row === undefined ? 'unknown-cursor' : page(wanted, row);
    },

    getDelivery({ webhookId, projectId, id }) {
      const row = webhook.get(webhookId, projectId) && rowOf.get(id, webhookId);
      const delivery = row === undefined ? undefined : one.get(row);
      return delivery && row !== undefined ? { delivery, attempts: attempts.all(row) } : undefined;
    },
  };
}

function preparePages(db: Tx['db']) {
  return {
    all: db.prepare<[object], DeliveryRow>(`
      SELECT ${DELIVERY_COLUMNS}
      FROM deliveries INDEXED BY deliveries_by_webhook JOIN events ON events.id = event_id
      WHERE ${FILTERS} ${PAGE}`),
    inState: db.prepare<[object], DeliveryRow>(`
      SELECT ${DELIVERY_COLUMNS}
      FROM deliveries INDEXED BY deliveries_by_state JOIN events ON events.id = event_id
      WHERE state <> 'in_flight' AND state = @state AND ${FILTERS} ${PAGE}`),
    // What is in flight is some 64 rows per sender.
    inFlight: db.prepare<[object], DeliveryRow>(`
      SELECT ${DELIVERY_COLUMNS}
      FROM deliveries INDEXED BY deliveries_leased JOIN events ON events.id = event_id
      WHERE state = 'in_flight' AND ${FILTERS} ${PAGE}`),
    // Indexes events_by_resource and the unique one of (event_id, webhook_id).
    ofResource: db.prepare<[object], DeliveryRow>(`
      SELECT ${DELIVERY_COLUMNS}
      FROM events INDEXED BY events_by_resource
        CROSS JOIN deliveries ON deliveries.event_id = events.id
      WHERE resource_id = @resourceId AND (@state IS NULL OR state = @state) AND ${FILTERS}
      ${PAGE}`),
  };
}
