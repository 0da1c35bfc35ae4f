/**
 * Webhooks and their secrets. enabled -> disabled (five days of failure), either -> deleted: a
 * tombstone without secrets. Pending deliveries are cancelled in the operation that deletes the
 * webhook, or that ends a subscription.
 */
import { must } from '../../../../proto/common/must.ts';
import type { Owned } from '../../types/rows.ts';
import type { NewWebhook, WebhookOps, WebhookRow } from '../../types/webhooks.ts';
import type { InSteps, Read, Transaction } from '../steps.ts';

export type WebhookStatements = {
  /** Undefined when it is deleted. */
  read(id: string, projectId: string): Read<WebhookRow | undefined>;
  /** Whether another webhook of the project has that endpoint. */
  isTaken(projectId: string, endpointKey: string, id: string): Read<boolean>;
  countOf(projectId: string): Read<number>;
  /** Enabled. */
  insert(webhook: NewWebhook): Read<WebhookRow>;
  setEndpoint(id: string, endpoint: { text: string; key: string }): void;
  /** Enabled, with no failures and the full pace. */
  enable(id: string): void;
  setEventTypes(id: string, eventTypes: string[]): void;
  /** Its pending deliveries of other types, tests excepted. */
  cancelUnsubscribed(id: string, eventTypes: string[], at: number): void;
  recountDue(id: string): void;
  /** It changed. */
  touch(id: string, at: number): void;
  /** To deleted; false when there is no such webhook. */
  remove(wanted: Owned & { at: number }): Read<boolean>;
  /** Its deliveries that are pending or in flight. */
  cancelAll(id: string, at: number): void;
  insertSecret(id: string, secret: { seq: number; sealed: Uint8Array; at: number }): void;
  /** 0 when it has none. */
  lastSeq(id: string): Read<number>;
  countLive(id: string, at: number): Read<number>;
  /** A secret that ends sooner keeps its end. */
  endSecrets(id: string, at: number): void;
  removeEndedSecrets(id: string, at: number): void;
  removeSecrets(id: string): void;
};

type SecretNames = 'nextSecretSeq' | 'addSecret';
type WriteNames = 'createWebhook' | 'updateWebhook' | 'deleteWebhook' | 'enableWebhook';

export function webhookOperations(
  sql: WebhookStatements,
  tx: Transaction,
): InSteps<Pick<WebhookOps, SecretNames | WriteNames>> {
  return { ...writeOperations(sql, tx), ...secretOperations(sql) };
}

function writeOperations(
  sql: WebhookStatements,
  { wake }: Transaction,
): InSteps<Pick<WebhookOps, WriteNames>> {
  return {
    *createWebhook(webhook, max) {
      const { id, projectId, endpointKey, sealed, at } = webhook;
      if (yield* sql.isTaken(projectId, endpointKey, id)) return { outcome: 'endpoint-taken' };
      if ((yield* sql.countOf(projectId)) >= max) return { outcome: 'too-many' };
      const made = yield* sql.insert(webhook);
      sql.insertSecret(id, { seq: 1, sealed, at });
      return { outcome: 'written', webhook: made };
    },

    *updateWebhook({ id, projectId, endpoint, eventTypes, at }) {
      if (!(yield* sql.read(id, projectId))) return undefined;
      if (endpoint && (yield* sql.isTaken(projectId, endpoint.key, id))) {
        return { outcome: 'endpoint-taken' };
      }
      if (endpoint) {
        // A new endpoint is a new start (proto/spec/webhooks.md 7), so it enables a disabled one.
        sql.setEndpoint(id, endpoint);
        sql.enable(id);
        wake('deliveries');
      }
      if (eventTypes) {
        sql.setEventTypes(id, eventTypes);
        sql.cancelUnsubscribed(id, eventTypes, at);
        sql.recountDue(id);
      }
      sql.touch(id, at);
      return { outcome: 'written', webhook: must(yield* sql.read(id, projectId), 'row') };
    },

    *deleteWebhook({ id, projectId, at }) {
      if (!(yield* sql.remove({ id, projectId, at }))) return false;
      sql.cancelAll(id, at);
      sql.removeSecrets(id);
      // A sender with an attempt in flight is informed by its next claim.
      wake('deliveries');
      return true;
    },

    *enableWebhook({ id, projectId, at }) {
      if (!(yield* sql.read(id, projectId))) return undefined;
      sql.enable(id);
      sql.touch(id, at);
      wake('deliveries');
      return must(yield* sql.read(id, projectId), 'row');
    },
  };
}

function secretOperations(sql: WebhookStatements): InSteps<Pick<WebhookOps, SecretNames>> {
  return {
    *nextSecretSeq({ id, projectId }) {
      const webhook = yield* sql.read(id, projectId);
      return webhook && (yield* sql.lastSeq(id)) + 1;
    },

    *addSecret({ id, projectId, seq, sealed, at, oldExpireAt }, max) {
      if (!(yield* sql.read(id, projectId))) return 'missing';
      if ((yield* sql.lastSeq(id)) + 1 !== seq) return 'raced';
      const oldLive = oldExpireAt > at ? yield* sql.countLive(id, at) : 0;
      if (oldLive + 1 > max) return 'too-many';
      sql.endSecrets(id, oldExpireAt);
      sql.insertSecret(id, { seq, sealed, at });
      sql.removeEndedSecrets(id, at);
      sql.touch(id, at);
      return 'added';
    },
  };
}
