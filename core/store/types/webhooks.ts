/** Webhooks and their secrets, as stored. */

export type WebhookRow = {
  id: string;
  projectId: string;
  endpoint: string;
  /** Sorted, without repeats. */
  eventTypes: string[];
  status: 'enabled' | 'disabled';
  disabledAt: number | null;
  disabledReason: string | null;
  /** Failing since; null after a success. */
  firstFailureAt: number | null;
  createdAt: number;
  updatedAt: number;
};

export type NewWebhook = {
  id: string;
  projectId: string;
  endpoint: string;
  /** What makes two endpoints the same. */
  endpointKey: string;
  eventTypes: string[];
  /** Its first secret, sealed with the associated data of sequence number 1. */
  sealed: Uint8Array;
  at: number;
};

export type WebhookChange = {
  id: string;
  projectId: string;
  endpoint?: { text: string; key: string } | undefined;
  eventTypes?: string[] | undefined;
  at: number;
};

/** A failed outcome of writing a webhook. */
export type WebhookRefusal = { outcome: 'endpoint-taken' } | { outcome: 'too-many' };
export type WrittenWebhook = { outcome: 'written'; webhook: WebhookRow } | WebhookRefusal;

type Wanted = { id: string; projectId: string };

export type WebhookOps = {
  /** At most `max` webhooks per project. */
  createWebhook(webhook: NewWebhook, max: number): WrittenWebhook;
  getWebhook(wanted: Wanted): WebhookRow | undefined;
  /** Newest first, from behind `before`. */
  listWebhooks(page: {
    projectId: string;
    before: string | undefined;
    limit: number;
  }): WebhookRow[];
  /**
   * Pending deliveries of types it no longer subscribes to are cancelled; a new endpoint starts
   * with no failures.
   * Undefined when there is no such webhook.
   */
  updateWebhook(change: WebhookChange): WrittenWebhook | undefined;
  /** Cancels what is pending and wipes the secrets; false when there is no such webhook. */
  deleteWebhook(wanted: Wanted & { at: number }): boolean;
  /** Enables it and forgets its failures; undefined when there is no such webhook. */
  enableWebhook(wanted: Wanted & { at: number }): WebhookRow | undefined;
  /**
   * The sequence number that the next secret of a webhook takes; undefined when there is no such
   * webhook.
   */
  nextSecretSeq(wanted: Wanted): number | undefined;
  /**
   * Adds a secret sealed for `seq`; those before it end at `oldExpireAt`. `raced` when `seq` is no
   * longer the next one, `too-many` when more than `max` would be live.
   */
  addSecret(
    secret: Wanted & { seq: number; sealed: Uint8Array; at: number; oldExpireAt: number },
    max: number,
  ): 'added' | 'raced' | 'too-many' | 'missing';
};
