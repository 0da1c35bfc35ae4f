/** Webhooks and their secrets, as stored. */
import type { Dated, Owned } from './rows.ts';

export type WebhookRow = Owned &
  Dated & {
    endpoint: string;
    /** Sorted, without repeats. */
    eventTypes: string[];
    status: 'enabled' | 'disabled';
    disabledAt: number | null;
    disabledReason: string | null;
    /** Failing since; null after a success. */
    firstFailureAt: number | null;
  };

export type NewWebhook = Owned & {
  endpoint: string;
  /** Endpoints with equal keys are the same. */
  endpointKey: string;
  eventTypes: string[];
  /** Its first secret, sealed with the associated data of sequence number 1. */
  sealed: Uint8Array;
  at: number;
};

export type WebhookChange = Owned & {
  endpoint?: { text: string; key: string } | undefined;
  eventTypes?: string[] | undefined;
  at: number;
};

export type WrittenWebhook =
  | { outcome: 'written'; webhook: WebhookRow }
  | { outcome: 'endpoint-taken' }
  | { outcome: 'too-many' };

export type WebhookOps = {
  /** At most `max` webhooks per project. */
  createWebhook(webhook: NewWebhook, max: number): WrittenWebhook;
  getWebhook(wanted: Owned): WebhookRow | undefined;
  /** Newest first, from behind `before`. */
  listWebhooks(page: {
    projectId: string;
    before: string | undefined;
    limit: number;
  }): WebhookRow[];
  /**
   * Cancels pending deliveries of types without a subscription; a new endpoint starts with no
   * failures. Undefined when there is no such webhook.
   */
  updateWebhook(change: WebhookChange): WrittenWebhook | undefined;
  /** Cancels its open deliveries and deletes its secrets; false when there is no such webhook. */
  deleteWebhook(wanted: Owned & { at: number }): boolean;
  /** Enables it and resets its failures; undefined when there is no such webhook. */
  enableWebhook(wanted: Owned & { at: number }): WebhookRow | undefined;
  /**
   * The sequence number of the webhook's next secret; undefined when there is no such webhook.
   */
  nextSecretSeq(wanted: Owned): number | undefined;
  /**
   * Adds a secret sealed for `seq`; earlier ones expire at `oldExpireAt`. `raced`: `seq` is no
   * longer the next one. `too-many`: more than `max` would be live.
   */
  addSecret(
    secret: Owned & { seq: number; sealed: Uint8Array; at: number; oldExpireAt: number },
    max: number,
  ): 'added' | 'raced' | 'too-many' | 'missing';
};
