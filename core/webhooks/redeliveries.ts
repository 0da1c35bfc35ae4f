/**
 * Deliveries requested by users: one delivery again, all lost deliveries of a time range, or a
 * test. Also for a disabled webhook, and without effect on its failure streak.
 * proto/spec/webhooks.md 4, 10.
 */

import type { WebhookServiceService } from '../../proto/gen/tabern/v1/webhooks.pb.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import { orNotFound, timeOf } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { newId, pathId } from '../common/ids.ts';
import type { Store } from '../store/types.ts';
import { toDelivery } from './delivery-list.ts';

type Handlers = Service<typeof WebhookServiceService, ProjectCaller>;

/** Deliveries that one recovery sends again. Source: proto/spec/webhooks.md 10. */
const RECOVER_MAX = 10_000;
/**
 * Deliveries per transaction: other operations commit in between. Source: proto/spec/webhooks.md
 * 10.
 */
const RECOVER_BATCH = 100;
/** In milliseconds: older deliveries are not kept. Source: proto/spec/webhooks.md 10. */
const RECOVER_SPAN_MS = 30 * 86_400_000;

export function redeliveryHandlers(
  store: Store,
  now: () => number,
): Pick<Handlers, 'sendTest' | 'replayDelivery' | 'recoverDeliveries'> {
  return {
    async sendTest({ id }, { projectId }) {
      const wanted = { webhookId: pathId('id', id), projectId, eventId: newId(), at: now() };
      const row = orNotFound(await store.sendTestEvent(wanted), 'Webhook', id);
      return { delivery: toDelivery(row) };
    },

    async replayDelivery({ id, deliveryId }, { projectId }) {
      const webhookId = pathId('id', id);
      const wanted = { webhookId, projectId, id: pathId('deliveryId', deliveryId), at: now() };
      const row = orNotFound(await store.redeliver(wanted), 'Delivery', deliveryId);
      if (row === 'not-ended') {
        throw new Fault('DELIVERY_NOT_ENDED', 'The delivery has not ended.', { id: deliveryId });
      }
      return { delivery: toDelivery(row) };
    },

    async recoverDeliveries({ id, since, until }, { projectId, call }) {
      const span = spanOf(since, until, now());
      const wanted = { webhookId: pathId('id', id), projectId, ...span };
      let [recovered, after] = [0, 0];
      while (recovered < RECOVER_MAX && !call.signal.aborted) {
        const max = Math.min(RECOVER_BATCH, RECOVER_MAX - recovered);
        const found = await store.recoverDeliveries({ ...wanted, max, after, at: now() });
        const batch = orNotFound(found, 'Webhook', id);
        recovered += batch.count;
        after = batch.last;
        if (batch.count < max) break;
      }
      return { recovered };
    },
  };
}

function spanOf(sinceText: string, untilText: string | undefined, at: number) {
  const since = timeOf('since', sinceText);
  const until = untilText === undefined ? at : timeOf('until', untilText);
  if (since > until) throw invalidField('since', 'must not be after `until`.');
  if (since < at - RECOVER_SPAN_MS) throw invalidField('since', 'must be at most 30 days ago.');
  return { since, until };
}
