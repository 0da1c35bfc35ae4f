/**
 * The calls that read deliveries: the list of a webhook, and one delivery with its attempts.
 * proto/spec/webhooks.md 12. The public id of a delivery is the id of its event.
 */

import type {
  Delivery,
  Delivery_Attempt,
  WebhookServiceService,
} from '../../proto/gen/tabern/v1/webhooks.pb.ts';
import { dateOf } from '../api/answers.ts';
import { invalidCursor, orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { readPage } from '../api/pagination.ts';
import { pathId } from '../common/ids.ts';
import type { AttemptRow, DeliveryRow, DeliveryState } from '../store/types/deliveries.ts';
import type { Store } from '../store/types.ts';

type Handlers = Service<typeof WebhookServiceService, ProjectCaller>;

export function deliveryViews(store: Store): Pick<Handlers, 'listDeliveries' | 'getDelivery'> {
  return {
    async listDeliveries({ id, status, eventType, resourceId, ...page }, { projectId }) {
      const state = status?.toLowerCase() as Lowercase<Delivery['status']> | undefined;
      const wanted = { webhookId: pathId('id', id), projectId, state, eventType, resourceId };
      const read = async (bounds: { before: string | undefined; limit: number }) => {
        const before = bounds.before?.toLowerCase();
        const rows = await store.listDeliveries({ ...wanted, ...bounds, before });
        if (rows === 'unknown-cursor') throw invalidCursor();
        return orNotFound(rows, 'Webhook', id);
      };
      return readPage(page, read, (row) => toDelivery(row));
    },

    async getDelivery({ id, deliveryId }, { projectId }) {
      const webhookId = pathId('id', id);
      const wanted = { webhookId, projectId, id: pathId('deliveryId', deliveryId) };
      const found = orNotFound(await store.getDelivery(wanted), 'Delivery', deliveryId);
      return { delivery: toDelivery(found.delivery, found.attempts) };
    },
  };
}

export function toDelivery(row: DeliveryRow, attempts: readonly AttemptRow[] = []): Delivery {
  const { id, webhookId, eventType, resourceId, tries } = row;
  return {
    id,
    webhookId,
    eventType,
    resourceId,
    tries,
    status: row.state.toUpperCase() as Uppercase<DeliveryState>,
    reason: row.reason ?? undefined,
    createdAt: new Date(row.createdAt),
    nextAttemptAt: dateOf(row.due),
    endedAt: dateOf(row.doneAt),
    attempts: attempts.map(toAttempt),
  };
}

export function toAttempt(row: AttemptRow): Delivery_Attempt {
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

/** The untrusted response of an endpoint, safe for display. proto/spec/webhooks.md 5. */
function excerpt(bytes: Uint8Array): string {
  return Buffer.from(bytes)
    .toString()
    .replace(/\p{Cc}/gu, '');
}
