/**
 * Webhooks and their secrets in SQLite. enabled -> disabled (five days of failure), either ->
 * deleted: a tombstone without secrets. What is pending is cancelled in the operation that deletes,
 * or that ends a subscription.
 */
import { must } from '../../../../proto/common/must.ts';
import { CAP_MAX } from '../../../delivery/rate.ts';
import { TEST_TYPE } from '../../../delivery/transitions.ts';
import type { WebhookOps, WebhookRow } from '../../types/webhooks.ts';
import type { Tx } from '../engine/transaction.ts';
import { dueRecount } from './due.ts';

/** After every UUID, in the order of text. */
const LAST_ID = '~';

const COLUMNS = `id, project_id AS projectId, endpoint, event_types AS eventTypes, status,
  disabled_at AS disabledAt, disabled_reason AS disabledReason, first_failure_at AS firstFailureAt,
  created_at AS createdAt, updated_at AS updatedAt`;

type Stored = Omit<WebhookRow, 'eventTypes'> & { eventTypes: string };

function read(row: Stored): WebhookRow {
  return { ...row, eventTypes: JSON.parse(row.eventTypes) };
}

export function webhookOps(tx: Tx): WebhookOps {
  const sql = {
    ...prepareWebhooks(tx),
    ...prepareEnds(tx),
    ...prepareSecrets(tx),
    recountDue: dueRecount(tx),
  };

  return {
    createWebhook(webhook, max) {
      const { id, projectId, endpointKey, sealed, at } = webhook;
      if (sql.byEndpoint.get(projectId, endpointKey, id)) return { outcome: 'endpoint-taken' };
      if ((sql.count.get(projectId) ?? 0) >= max) return { outcome: 'too-many' };
      const { sealed: _, ...row } = { ...webhook, eventTypes: JSON.stringify(webhook.eventTypes) };
      const made = must(sql.insert.get(row), 'row');
      sql.insertSecret.run(id, 1, sealed, at);
      return { outcome: 'written', webhook: read(made) };
    },

    getWebhook({ id, projectId }) {
      const row = sql.byId.get(id, projectId);
      return row && read(row);
    },

    listWebhooks: ({ projectId, before, limit }) =>
      sql.page.all(projectId, before ?? LAST_ID, limit).map(read),

    updateWebhook({ id, projectId, endpoint, eventTypes, at }) {
      if (!sql.byId.get(id, projectId)) return undefined;
      if (endpoint && sql.byEndpoint.get(projectId, endpoint.key, id)) {
        return { outcome: 'endpoint-taken' };
      }
      if (endpoint) {
        sql.setEndpoint.run({ id, text: endpoint.text, key: endpoint.key });
        sql.enable.run(id);
        tx.wake('deliveries');
      }
      if (eventTypes) {
        const types = JSON.stringify(eventTypes);
        sql.setEventTypes.run(types, id);
        sql.cancelUnsubscribed.run(at, id, types);
        sql.recountDue.run(id);
      }
      sql.touch.run(at, id);
      return { outcome: 'written', webhook: read(must(sql.byId.get(id, projectId), 'row')) };
    },

    deleteWebhook({ id, projectId, at }) {
      if (sql.remove.run(at, id, projectId).changes === 0) return false;
      sql.cancelAll.run(at, id);
      sql.wipeSecrets.run(id);
      // Whoever sends to it now is told.
      tx.wake('deliveries');
      return true;
    },

    enableWebhook({ id, projectId, at }) {
      if (!sql.byId.get(id, projectId)) return undefined;
      sql.enable.run(id);
      sql.touch.run(at, id);
      tx.wake('deliveries');
      return read(must(sql.byId.get(id, projectId), 'row'));
    },

    nextSecretSeq({ id, projectId }) {
      return sql.byId.get(id, projectId) && (sql.lastSeq.get(id) ?? 0) + 1;
    },

    addSecret({ id, projectId, seq, sealed, at, oldExpireAt }, max) {
      if (!sql.byId.get(id, projectId)) return 'missing';
      if ((sql.lastSeq.get(id) ?? 0) + 1 !== seq) return 'raced';
      const oldLive = oldExpireAt > at ? (sql.countLive.get(id, at) ?? 0) : 0;
      if (oldLive + 1 > max) return 'too-many';
      sql.endOld.run({ id, oldExpireAt });
      sql.insertSecret.run(id, seq, sealed, at);
      sql.wipeEnded.run(id, at);
      sql.touch.run(at, id);
      return 'added';
    },
  };
}

function prepareWebhooks({ db }: Tx) {
  return {
    // Index webhooks_by_endpoint.
    byEndpoint: db.prepare<[string, string, string]>(`
      SELECT 1 FROM webhooks
      WHERE project_id = ? AND endpoint_key = ? AND status <> 'deleted' AND id <> ?`),
    count: db
      .prepare<[string], number>(
        `SELECT COUNT(*) FROM webhooks WHERE project_id = ? AND status <> 'deleted'`,
      )
      .pluck(),
    insert: db.prepare<[object], Stored>(`
      INSERT INTO webhooks (id, project_id, endpoint, endpoint_key, event_types, status,
        created_at, updated_at)
      VALUES (@id, @projectId, @endpoint, @endpointKey, @eventTypes, 'enabled', @at, @at)
      RETURNING ${COLUMNS}`),
    byId: db.prepare<[string, string], Stored>(`
      SELECT ${COLUMNS} FROM webhooks WHERE id = ? AND project_id = ? AND status <> 'deleted'`),
    // Index webhooks_by_project; ids are UUID v7, so newest id = newest webhook.
    page: db.prepare<[string, string, number], Stored>(`
      SELECT ${COLUMNS} FROM webhooks
      WHERE project_id = ? AND id < ? AND status <> 'deleted'
      ORDER BY id DESC LIMIT ?`),
    // A new endpoint is a new start (proto/spec/webhooks.md 7), so it also enables what was
    // disabled.
    setEndpoint: db.prepare<[{ id: string; text: string; key: string }]>(`
      UPDATE webhooks SET endpoint = @text, endpoint_key = @key WHERE id = @id`),
    enable: db.prepare<[string]>(`
      UPDATE webhooks
      SET status = 'enabled', disabled_at = NULL, disabled_reason = NULL, first_failure_at = NULL,
        last_attempt_at = NULL, consecutive_failures = 0, cap = ${CAP_MAX}, breaker_ms = 0,
        not_before = 0
      WHERE id = ?`),
    setEventTypes: db.prepare<[string, string]>('UPDATE webhooks SET event_types = ? WHERE id = ?'),
    touch: db.prepare<[number, string]>(
      'UPDATE webhooks SET updated_at = ?, version = version + 1 WHERE id = ?',
    ),
  };
}

function prepareEnds({ db }: Tx) {
  return {
    remove: db.prepare<[number, string, string]>(`
      UPDATE webhooks SET status = 'deleted', next_due = NULL, updated_at = ?, version = version + 1
      WHERE id = ? AND project_id = ? AND status <> 'deleted'`),
    // Indexes deliveries_due and deliveries_in_flight.
    cancelAll: db.prepare<[number, string]>(`
      UPDATE deliveries SET state = 'cancelled', reason = 'webhook_deleted', due = NULL, done_at = ?
      WHERE webhook_id = ? AND state IN ('pending', 'in_flight')`),
    cancelUnsubscribed: db.prepare<[number, string, string]>(`
      UPDATE deliveries SET state = 'cancelled', reason = 'unsubscribed', due = NULL, done_at = ?
      WHERE webhook_id = ? AND state = 'pending' AND event_id IN (
        SELECT id FROM events
        WHERE id = deliveries.event_id AND type <> '${TEST_TYPE}'
          AND type NOT IN (SELECT value FROM json_each(?)))`),
  };
}

function prepareSecrets({ db }: Tx) {
  return {
    insertSecret: db.prepare<[string, number, Uint8Array, number]>(`
      INSERT INTO webhook_secrets (webhook_id, seq, sealed, created_at) VALUES (?, ?, ?, ?)`),
    lastSeq: db
      .prepare<[string], number>('SELECT MAX(seq) FROM webhook_secrets WHERE webhook_id = ?')
      .pluck(),
    countLive: db
      .prepare<[string, number], number>(`
        SELECT COUNT(*) FROM webhook_secrets
        WHERE webhook_id = ? AND (expires_at IS NULL OR expires_at > ?)`)
      .pluck(),
    /** A secret that ends sooner already keeps its end. */
    endOld: db.prepare<[{ id: string; oldExpireAt: number }]>(`
      UPDATE webhook_secrets SET expires_at = MIN(COALESCE(expires_at, @oldExpireAt), @oldExpireAt)
      WHERE webhook_id = @id`),
    wipeEnded: db.prepare<[string, number]>(
      'DELETE FROM webhook_secrets WHERE webhook_id = ? AND expires_at <= ?',
    ),
    wipeSecrets: db.prepare<[string]>('DELETE FROM webhook_secrets WHERE webhook_id = ?'),
  };
}
