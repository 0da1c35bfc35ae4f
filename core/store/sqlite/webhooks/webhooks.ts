/** Webhooks and their secrets in SQLite. Rules: core/store/operations/webhooks.ts. */
import { must } from '../../../../proto/common/must.ts';
import { CAP_MAX } from '../../../delivery/rate.ts';
import { TEST_TYPE } from '../../../delivery/transitions.ts';
import type { WebhookStatements } from '../../operations/webhooks.ts';
import type { WebhookOps, WebhookRow } from '../../types/webhooks.ts';
import { found } from '../engine/steps.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';
import { dueRecount } from './due.ts';

/** After every UUID, in the order of text. */
const LAST_ID = '~';

const COLUMNS = `id, project_id AS projectId, endpoint, event_types AS eventTypes, status,
  disabled_at AS disabledAt, disabled_reason AS disabledReason, first_failure_at AS firstFailureAt,
  created_at AS createdAt, updated_at AS updatedAt`;

type Stored = Omit<WebhookRow, 'eventTypes'> & { eventTypes: string };

function whole(row: Stored): WebhookRow {
  return { ...row, eventTypes: JSON.parse(row.eventTypes) };
}

const reader = preparedOnce(({ db }: Tx) => {
  const byId = db.prepare<[string, string], Stored>(`
    SELECT ${COLUMNS} FROM webhooks WHERE id = ? AND project_id = ? AND status <> 'deleted'`);
  return (id: string, projectId: string) => {
    const row = byId.get(id, projectId);
    return row && whole(row);
  };
});

export function webhookViews(tx: Tx): Pick<WebhookOps, 'getWebhook' | 'listWebhooks'> {
  const read = reader(tx);
  // Index webhooks_by_project; ids are UUID v7, so newest id = newest webhook.
  const page = tx.db.prepare<[string, string, number], Stored>(`
    SELECT ${COLUMNS} FROM webhooks
    WHERE project_id = ? AND id < ? AND status <> 'deleted'
    ORDER BY id DESC LIMIT ?`);
  return {
    getWebhook: ({ id, projectId }) => read(id, projectId),
    listWebhooks: ({ projectId, before, limit }) =>
      page.all(projectId, before ?? LAST_ID, limit).map(whole),
  };
}

export function webhookStatements(tx: Tx): WebhookStatements {
  const sql = { ...prepareWebhooks(tx), ...prepareEnds(tx) };
  const read = reader(tx);
  return {
    ...secretStatements(tx),
    read: (id, projectId) => found(read(id, projectId)),
    isTaken: (projectId, endpointKey, id) =>
      found(sql.byEndpoint.get(projectId, endpointKey, id) !== undefined),
    countOf: (projectId) => found(sql.count.get(projectId) ?? 0),
    insert({ sealed: _, ...webhook }) {
      const row = { ...webhook, eventTypes: JSON.stringify(webhook.eventTypes) };
      return found(whole(must(sql.insert.get(row), 'row')));
    },
    setEndpoint: (id, endpoint) => void sql.setEndpoint.run({ id, ...endpoint }),
    enable: (id) => void sql.enable.run(id),
    setEventTypes: (id, types) => void sql.setEventTypes.run(JSON.stringify(types), id),
    cancelUnsubscribed: (id, types, at) =>
      void sql.cancelUnsubscribed.run(at, id, JSON.stringify(types)),
    recountDue: (id) => void sql.recountDue.run(id),
    touch: (id, at) => void sql.touch.run(at, id),
    remove: ({ id, projectId, at }) => found(sql.remove.run(at, id, projectId).changes > 0),
    cancelAll: (id, at) => void sql.cancelAll.run(at, id),
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

function prepareEnds(tx: Tx) {
  const { db } = tx;
  return {
    recountDue: dueRecount(tx),
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

type SecretNames = 'insertSecret' | 'lastSeq' | 'countLive';
type SecretEnds = 'endSecrets' | 'removeEndedSecrets' | 'removeSecrets';

function secretStatements(tx: Tx): Pick<WebhookStatements, SecretNames | SecretEnds> {
  const sql = prepareSecrets(tx);
  return {
    insertSecret: (id, { seq, sealed, at }) => void sql.insertSecret.run(id, seq, sealed, at),
    lastSeq: (id) => found(sql.lastSeq.get(id) ?? 0),
    countLive: (id, at) => found(sql.countLive.get(id, at) ?? 0),
    endSecrets: (id, oldExpireAt) => void sql.endOld.run({ id, oldExpireAt }),
    removeEndedSecrets: (id, at) => void sql.wipeEnded.run(id, at),
    removeSecrets: (id) => void sql.wipeSecrets.run(id),
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
