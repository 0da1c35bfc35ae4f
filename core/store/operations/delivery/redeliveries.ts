/**
 * Requests of users: send one delivery again, send all skipped or exhausted ones of a span of time,
 * or send a test. exhausted | skipped | delivered | cancelled -> pending, one generation on: the
 * same bytes, the whole schedule, signed anew. proto/spec/webhooks.md 4.
 */
import { must } from '../../../../proto/common/must.ts';
import { envelope } from '../../../delivery/envelope.ts';
import { TEST_TYPE } from '../../../delivery/transitions.ts';
import type {
  DeliveryRow,
  DeliveryState,
  Recovery,
  RedeliveryOps,
} from '../../types/deliveries.ts';
import type { EventRow } from '../events.ts';
import { OPEN_DELIVERY } from '../states.ts';
import type { InSteps, Read, Transaction } from '../steps.ts';

export type RedeliveryStatements = {
  hasWebhook(id: string, projectId: string): Read<boolean>;
  /** By its event's id. */
  find(eventId: string, webhookId: string): Read<{ row: number; state: DeliveryState } | undefined>;
  view(row: number): Read<DeliveryRow | undefined>;
  /** Pending and due at `at`, one generation on. */
  redeliver(row: number, at: number): void;
  /** Rows of deliveries that were skipped or exhausted, tests left out, oldest first. */
  missed(span: Pick<Recovery, 'webhookId' | 'since' | 'until' | 'after' | 'max'>): Read<number[]>;
  insertTest(event: EventRow): void;
  /** The test's delivery, due at once; gives its row. */
  insertTestDelivery(eventId: string, webhookId: string, at: number): Read<number>;
  recountDue(webhookId: string): void;
};

export function redeliveryOperations(
  sql: RedeliveryStatements,
  tx: Transaction,
): InSteps<RedeliveryOps> {
  return {
    *redeliver({ webhookId, projectId, id, at }) {
      if (!(yield* sql.hasWebhook(webhookId, projectId))) return undefined;
      const found = yield* sql.find(id, webhookId);
      if (!found) return undefined;
      if (OPEN_DELIVERY.includes(found.state)) return 'not-ended';
      sql.redeliver(found.row, at);
      sql.recountDue(webhookId);
      tx.wake('deliveries');
      return yield* sql.view(found.row);
    },

    *recoverDeliveries({ projectId, at, ...span }) {
      const { webhookId, after } = span;
      if (!(yield* sql.hasWebhook(webhookId, projectId))) return undefined;
      const rows = yield* sql.missed(span);
      for (const row of rows) sql.redeliver(row, at);
      sql.recountDue(webhookId);
      tx.crashPoint('recover-deliveries');
      if (rows.length > 0) tx.wake('deliveries');
      return { count: rows.length, last: rows.at(-1) ?? after };
    },

    *sendTestEvent({ webhookId, projectId, eventId: id, at }) {
      if (!(yield* sql.hasWebhook(webhookId, projectId))) return undefined;
      const event = { id, type: TEST_TYPE, resourceId: webhookId, projectId, at };
      sql.insertTest({ ...event, body: envelope({ ...event, data: {} }) });
      const row = yield* sql.insertTestDelivery(id, webhookId, at);
      sql.recountDue(webhookId);
      tx.wake('deliveries');
      return must(yield* sql.view(row), 'row');
    },
  };
}
