/** Deliveries as people see them, and what people ask to be sent. */
import type { AttemptOutcome } from './deliveries.ts';

export type DeliveryState =
  | 'pending'
  | 'in_flight'
  | 'delivered'
  | 'exhausted'
  | 'skipped'
  | 'cancelled';

export type DeliveryRow = {
  /** Of the event: unique within its webhook. */
  id: string;
  webhookId: string;
  eventType: string;
  resourceId: string;
  state: DeliveryState;
  reason: string | null;
  tries: number;
  due: number | null;
  createdAt: number;
  doneAt: number | null;
};

export type AttemptRow = {
  n: number;
  trigger: 'event' | 'retry' | 'manual';
  endpoint: string;
  startedAt: number;
  endedAt: number | null;
  outcome: AttemptOutcome | 'interrupted' | null;
  status: number | null;
  latencyMs: number | null;
  error: string | null;
  response: Uint8Array | null;
};

/** A webhook of a project. */
type Owned = { webhookId: string; projectId: string };

export type DeliveriesWanted = Owned & {
  state: DeliveryState | undefined;
  eventType: string | undefined;
  resourceId: string | undefined;
  before: string | undefined;
  limit: number;
};

export type DeliveryViewOps = {
  /**
   * Newest first, from behind the delivery `before`. Undefined when there is no such webhook,
   * `unknown-cursor` when it has no delivery `before`.
   */
  listDeliveries(wanted: DeliveriesWanted): DeliveryRow[] | 'unknown-cursor' | undefined;
  /** With its attempts, oldest first. */
  getDelivery(
    wanted: Owned & { id: string },
  ): { delivery: DeliveryRow; attempts: AttemptRow[] } | undefined;
};

export type Recovery = Owned & {
  since: number;
  until: number;
  /** In rows, per operation. */
  max: number;
  /** `last` of the batch before; 0 at first. */
  after: number;
  at: number;
};

export type ReplayOps = {
  /** The same bytes, due at once, with the whole schedule. */
  replayDelivery(wanted: Owned & { id: string; at: number }): DeliveryRow | 'not-ended' | undefined;
  /**
   * Replays up to `max` that were skipped or exhausted, oldest first. `last` is where the next
   * batch goes on. Undefined when there is no such webhook.
   */
  recoverDeliveries(recovery: Recovery): { count: number; last: number } | undefined;
  /** An event for this webhook alone; undefined when there is no such webhook. */
  sendTestEvent(wanted: Owned & { eventId: string; at: number }): DeliveryRow | undefined;
};
