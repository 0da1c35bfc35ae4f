/**
 * The calls that read deliveries: the list of a webhook, and one delivery with its attempts.
 * proto/spec/webhooks.md 12. The public id of a delivery is the id of its event.
 */

import type {
  Delivery,
  Delivery_Attempt,
  WebhookServiceService,
} from '../../proto/gen/tabern/v1/webhooks.pb.ts';
import { Fault, invalidField, notFound } from '../../proto/rpc/errors.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { readPage } from '../api/pagination.ts';
import { pathId } from '../common/ids.ts';
import type { AttemptRow, DeliveryRow, DeliveryState } from '../store/types/deliveries.ts';
import type { Store } from '../store/types.ts';

type Handlers = Service<typeof WebhookServiceService, ProjectCaller>;

const STATUSES = {
  pending: 'PENDING',
  in_flight: 'IN_FLIGHT',
  delivered: 'DELIVERED',
  exhausted: 'EXHAUSTED',
  skipped: 'SKIPPED',
  cancelled: 'CANCELLED',
} as const satisfies Record<DeliveryState, Delivery['status']>;

const STATES = Object.keys(STATUSES) as DeliveryState[];

export function deliveryViews(store: Store): Pick<Handlers, 'listDeliveries' | 'getDelivery'> {
  return {
    async listDeliveries({ id, status, eventType, resourceId, ...page }, { projectId }) {
      const state = status === undefined ? undefined : stateOf(status);
      const wanted = { webhookId: pathId('id', id), projectId, state, eventType, resourceId };
      const read = async (bounds: { before: string | undefined; limit: number }) => {
        const before = bounds.before?.toLowerCase();
        const rows = await store.listDeliveries({ ...wanted, ...bounds, before });
        if (rows === undefined) throw notFound('Webhook', id);
        if (rows !== 'unknown-cursor') return rows;
        throw new Fault('INVALID_CURSOR', '`cursor` is not valid.', { field: 'cursor' });
      };
      return readPage(page, read, (row) => toDelivery(row));
    },

    async getDelivery({ id, deliveryId }, { projectId }) {
      const wanted = {
        webhookId: pathId('id', id),
        projectId,
        id: pathId('deliveryId', deliveryId),
      };
      const found = await store.getDelivery(wanted);
      if (!found) throw notFound('Delivery', deliveryId);
      return { delivery: toDelivery(found.delivery, found.attempts) };
    },
  };
}

function stateOf(status: Delivery['status']): DeliveryState {
  const state = STATES.find((one) => STATUSES[one] === status);
  if (state === undefined) throw invalidField('status', 'is not one of a delivery.');
  return state;
}

export function toDelivery(row: DeliveryRow, attempts: readonly AttemptRow[] = []): Delivery {
  const { id, webhookId, eventType, resourceId, tries } = row;
  return {
    id,
    webhookId,
    eventType,
    resourceId,
    tries,
    status: STATUSES[row.state],
    reason: row.reason ?? undefined,
    createdAt: new Date(row.createdAt),
    nextAttemptAt: dateOf(row.due),
    endedAt: dateOf(row.doneAt),
    attempts: attempts.map(toAttempt),
  };
}

function toAttempt(row: AttemptRow): Delivery_Attempt {
  const { n: number, trigger, endpoint } = row;
  return {
    number,
    trigger,
    endpoint,
    startedAt: new Date(row.startedAt),
    endedAt: dateOf(row.endedAt),
    outcome: row.outcome ?? undefined,
    statusCode: row.status ?? undefined,
    latencyMs: row.latencyMs ?? undefined,
    error: row.error ?? undefined,
    response: row.response === null ? undefined : excerpt(row.response),
  };
}

/**
 * The response of an endpoint, made safe for display: it is untrusted. proto/spec/webhooks.md 5.
 */
function excerpt(bytes: Uint8Array): string {
  return Buffer.from(bytes)
    .toString('utf8')
    .replace(/\p{Cc}/gu, '');
}

function dateOf(at: number | null): Date | undefined {
  return at === null ? undefined : new Date(at);
}
