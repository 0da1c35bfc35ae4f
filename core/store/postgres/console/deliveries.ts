/**
 * Deliveries of a project as the console lists them: its events, newest first, each with its
 * deliveries in the order of their webhooks.
 */
import { must } from '../../../../proto/common/must.ts';
import type {
  ConsoleDeliveriesWanted,
  ConsoleDeliveryRow,
  ConsoleOps,
  Position,
} from '../../types/console.ts';
import { plannedAnew } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { ROWS_MAX } from './walk.ts';

/** Of events joined with deliveries and webhooks: a row without its last attempt. */
export const CONSOLE_DELIVERY = `events.id AS id, deliveries.webhook_id AS "webhookId", endpoint,
  events.type AS "eventType", events.resource_id AS "resourceId", deliveries.state AS state,
  deliveries.reason AS reason, deliveries.tries AS tries, deliveries.due AS due,
  events.created_at AS "createdAt", deliveries.done_at AS "doneAt"`;

/** The unique index of deliveries (event_id, webhook_id). */
const TABLES = `events
  JOIN deliveries ON deliveries.event_id = events.id`;
const RANGE = `events.project_id = @projectId
  AND (events.created_at, events.id) <= (@beforeAt, @beforeEvent)
  AND (events.created_at, events.id) >= (@lowAt, @lowEvent)
  AND (events.id <> @beforeEvent OR deliveries.webhook_id < @beforeWebhook)`;
const ORDER = 'ORDER BY events.created_at DESC, events.id DESC, deliveries.webhook_id DESC';

const FILTER = `(@state::TEXT IS NULL OR deliveries.state = @state)
  AND (@webhookId::TEXT IS NULL OR deliveries.webhook_id = @webhookId)
  AND (@resourceId::TEXT IS NULL OR events.resource_id = @resourceId)
  AND (@eventType::TEXT IS NULL OR events.type = @eventType)
  AND (@text::TEXT IS NULL OR strpos(events.id, @text) > 0 OR strpos(lower(events.type), @text) > 0
    OR strpos(events.resource_id, @text) > 0 OR strpos(lower(endpoint), @text) > 0)`;

/** Index attempts_by_delivery. */
const LAST_ATTEMPT = `SELECT outcome AS "lastOutcome", attempts.status AS "lastStatusCode",
    latency_ms AS "lastLatencyMs"
  FROM deliveries JOIN attempts ON attempts.delivery_id = deliveries.id
  WHERE deliveries.event_id = ? AND deliveries.webhook_id = ? AND ended_at IS NOT NULL
  ORDER BY n DESC LIMIT 1`;

type Attempt = Pick<ConsoleDeliveryRow, 'lastOutcome' | 'lastStatusCode' | 'lastLatencyMs'>;
type Bare = Omit<ConsoleDeliveryRow, keyof Attempt>;
type Place = Position & { webhookId: string };
export const NO_ATTEMPT: Attempt = { lastOutcome: null, lastStatusCode: null, lastLatencyMs: null };

export function consoleDeliveryOps(tx: Tx): InReads<Pick<ConsoleOps, 'consoleDeliveries'>> {
  const { row, rows } = plannedAnew(tx);
  const lowestEvent = row<[object], Position>(`
    SELECT created_at AS at, id FROM events
    WHERE project_id = @projectId AND created_at >= @from
      AND (created_at, id) <= (@beforeAt, @beforeEvent)
    ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET @scanMax - 1`);
  const lowest = row<[object], Place>(`
    SELECT events.created_at AS at, events.id AS id, deliveries.webhook_id AS "webhookId"
    FROM ${TABLES} WHERE ${RANGE} ${ORDER} LIMIT 1 OFFSET @scanMax - 1`);
  // A deleted webhook's deliveries are not shown.
  const page = rows<[object], Bare>(`
    SELECT ${CONSOLE_DELIVERY} FROM ${TABLES}
    JOIN webhooks ON webhooks.id = deliveries.webhook_id AND webhooks.status <> 'deleted'
    WHERE ${RANGE} AND (events.id <> @lowEvent OR deliveries.webhook_id >= @lowWebhook)
      AND ${FILTER} ${ORDER} LIMIT @limit + 1`);
  const attempt = row<[string, string], Attempt>(LAST_ATTEMPT);

  function* examined(wanted: ConsoleDeliveriesWanted) {
    const { before, from, to, ...rest } = wanted;
    const start = before !== undefined && before.at < to ? before : { at: to, id: '' };
    const [beforeEvent, beforeWebhook = ''] = start.id.split('_');
    const bounds = { ...rest, from, beforeAt: start.at, beforeEvent, beforeWebhook };
    const event = yield* lowestEvent({ ...bounds, scanMax: ROWS_MAX });
    const within = { ...bounds, lowAt: event?.at ?? from, lowEvent: event?.id ?? '' };
    const last = yield* lowest({ ...within, scanMax: ROWS_MAX });
    return { within, event, last };
  }

  return {
    *consoleDeliveries(wanted) {
      const { within, event, last } = yield* examined(wanted);
      const low = last
        ? { lowAt: last.at, lowEvent: last.id, lowWebhook: last.webhookId }
        : { lowWebhook: '' };
      const found = yield* page({ ...within, ...low });
      const shown = found.slice(0, wanted.limit);
      const attempts = shown.map((one) => attempt(one.id, one.webhookId));
      const rows: ConsoleDeliveryRow[] = [];
      for (const [at, one] of shown.entries()) {
        rows.push({ ...one, ...((yield* must(attempts[at], 'attempt')) ?? NO_ATTEMPT) });
      }
      const end = found.length > wanted.limit ? shown.at(-1) : undefined;
      return {
        rows,
        next: end ? placeOf({ ...end, at: end.createdAt }) : last ? placeOf(last) : event,
      };
    },
  };
}

function placeOf({ at, id, webhookId }: Place): Position {
  return { at, id: `${id}_${webhookId}` };
}
