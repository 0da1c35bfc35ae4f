/** Deliveries as rows of the console. */
import type {
  ConsoleDelivery,
  ConsoleServiceService,
} from '../../proto/gen/tabern/v1/console.pb.ts';
import { dateOf } from '../api/answers.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import type { ConsoleDeliveryRow } from '../store/types/console.ts';
import type { DeliveryState } from '../store/types/deliveries.ts';
import type { Store } from '../store/types.ts';
import { cursorAfter, listOf, optionalId } from './filters.ts';

type Handlers = Service<typeof ConsoleServiceService, ProjectCaller>;

export function consoleDeliveries(
  store: Pick<Store, 'consoleDeliveries'>,
): Pick<Handlers, 'listDeliveries'> {
  return {
    async listDeliveries({ status, webhookId, resourceId, eventType, ...page }, { projectId }) {
      const owner = { projectId, list: 'deliveries' };
      const found = await store.consoleDeliveries({
        ...listOf(owner, page),
        state: status?.toLowerCase() as DeliveryState | undefined,
        webhookId: optionalId('webhookId', webhookId),
        resourceId: optionalId('resourceId', resourceId),
        eventType,
      });
      return {
        deliveries: found.rows.map(toConsoleDelivery),
        nextCursor: cursorAfter(owner, found),
      };
    },
  };
}

export function toConsoleDelivery(row: ConsoleDeliveryRow): ConsoleDelivery {
  const { state, due, doneAt, ...same } = row;
  return {
    ...same,
    status: state.toUpperCase() as Uppercase<DeliveryState>,
    reason: row.reason ?? undefined,
    createdAt: new Date(row.createdAt),
    nextAttemptAt: dateOf(due),
    endedAt: dateOf(doneAt),
    lastOutcome: row.lastOutcome ?? undefined,
    lastStatusCode: row.lastStatusCode ?? undefined,
    lastLatencyMs: row.lastLatencyMs ?? undefined,
  };
}
