/**
 * Lists of deliveries in PostgreSQL. A page uses one of three indexes: for all deliveries of a
 * webhook, for those in one state, or for those of one resource.
 */

import type { Read } from '../../operations/steps.ts';
import type {
  AttemptRow,
  DeliveriesWanted,
  DeliveryRow,
  DeliveryViewOps,
} from '../../types/deliveries.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { webhookFinder } from './due.ts';

/** Of deliveries joined with events. */
const DELIVERY_COLUMNS = `events.id AS id, webhook_id AS "webhookId", type AS "eventType",
  resource_id AS "resourceId", state, reason, tries, due, events.created_at AS "createdAt",
  done_at AS "doneAt"`;

export const DELIVERY_BY_ROW = `
  SELECT ${DELIVERY_COLUMNS}
  FROM deliveries JOIN events ON events.id = event_id WHERE deliveries.id = ?`;

/** Without `state` and `resourceId`, which choose the index. */
const FILTERS = `
  webhook_id = @webhookId AND deliveries.id < @before
  AND (@eventType::TEXT IS NULL OR type = @eventType)`;
const PAGE = 'ORDER BY deliveries.id DESC LIMIT @limit';

export function deliveryViewOps(tx: Tx): InReads<DeliveryViewOps> {
  const { row, rows, value } = statements(tx);
  const hasWebhook = webhookFinder(tx);
  // The unique index of (event_id, webhook_id).
  const rowOf = value<[string, string], number>(
    'SELECT id FROM deliveries WHERE event_id = ? AND webhook_id = ?',
  );
  const one = row<[number], DeliveryRow>(DELIVERY_BY_ROW);
  // Index attempts_by_delivery.
  const attempts = rows<[number], AttemptRow>(`
    SELECT n, trigger, endpoint, started_at AS "startedAt", ended_at AS "endedAt", outcome, status,
      latency_ms AS "latencyMs", error, response
    FROM attempts WHERE delivery_id = ? ORDER BY n`);
  const pages = pagesBy(tx);

  function page(wanted: DeliveriesWanted, before: number): Read<DeliveryRow[]> {
    const filter = { ...wanted, before };
    if (wanted.resourceId !== undefined) return pages.ofResource(filter);
    if (wanted.state === undefined) return pages.all(filter);
    return wanted.state === 'in_flight' ? pages.inFlight(filter) : pages.inState(filter);
  }

  return {
    *listDeliveries(wanted) {
      const { webhookId, projectId, before } = wanted;
      if (!(yield* hasWebhook(webhookId, projectId))) return undefined;
      if (before === undefined) return yield* page(wanted, Number.MAX_SAFE_INTEGER);
      const row = yield* rowOf(before, webhookId);
      return row === undefined ? 'unknown-cursor' : yield* page(wanted, row);
    },

    *getDelivery({ webhookId, projectId, id }) {
      const isOwn = yield* hasWebhook(webhookId, projectId);
      const row = isOwn ? yield* rowOf(id, webhookId) : undefined;
      const delivery = row === undefined ? undefined : yield* one(row);
      if (row === undefined || delivery === undefined) return undefined;
      return { delivery, attempts: yield* attempts(row) };
    },
  };
}

function pagesBy(tx: Tx) {
  const { rows } = statements(tx);
  return {
    all: rows<[object], DeliveryRow>(`
      SELECT ${DELIVERY_COLUMNS}
      FROM deliveries JOIN events ON events.id = event_id
      WHERE ${FILTERS} ${PAGE}`),
    inState: rows<[object], DeliveryRow>(`
      SELECT ${DELIVERY_COLUMNS}
      FROM deliveries JOIN events ON events.id = event_id
      WHERE state <> 'in_flight' AND state = @state AND ${FILTERS} ${PAGE}`),
    // In flight are some 64 rows per sender.
    inFlight: rows<[object], DeliveryRow>(`
      SELECT ${DELIVERY_COLUMNS}
      FROM deliveries JOIN events ON events.id = event_id
      WHERE state = 'in_flight' AND ${FILTERS} ${PAGE}`),
    // Indexes events_by_resource and the unique one of (event_id, webhook_id).
    ofResource: rows<[object], DeliveryRow>(`
      SELECT ${DELIVERY_COLUMNS}
      FROM events JOIN deliveries ON deliveries.event_id = events.id
      WHERE resource_id = @resourceId AND (@state::TEXT IS NULL OR state = @state) AND ${FILTERS}
      ${PAGE}`),
  };
}
