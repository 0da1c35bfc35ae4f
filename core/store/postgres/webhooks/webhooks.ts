/** Webhooks and their secrets in PostgreSQL. Rules: core/store/operations/delivery/webhooks.ts. */
import { CAP_MAX } from '../../../delivery/rate.ts';
import { TEST_TYPE } from '../../../delivery/transitions.ts';
import type { WebhookStatements } from '../../operations/delivery/webhooks.ts';
import { OPEN_DELIVERY } from '../../operations/states.ts';
import type { WebhookOps, WebhookRow } from '../../types/webhooks.ts';
import { inStates, statements } from '../engine/statements.ts';
import { type InReads, mapped } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { dueRecount } from './due.ts';

/** After every UUID, in the order of text. */
const LAST_ID = '~';

const COLUMNS = `id, project_id AS "projectId", endpoint, event_types AS "eventTypes", status,
  disabled_at AS "disabledAt", disabled_reason AS "disabledReason", first_failure_at AS
  "firstFailureAt",
  created_at AS "createdAt", updated_at AS "updatedAt"`;

type Stored = Omit<WebhookRow, 'eventTypes'> & { eventTypes: string };

function whole(row: Stored): WebhookRow {
  return { ...row, eventTypes: JSON.parse(row.eventTypes) };
}

function reader(tx: Tx) {
  const byId = statements(tx).row<[string, string], Stored>(`
    SELECT ${COLUMNS} FROM webhooks WHERE id = ? AND project_id = ? AND status <> 'deleted'`);
  return (id: string, projectId: string) => mapped(byId(id, projectId), (row) => row && whole(row));
}

export function webhookViews(tx: Tx): InReads<Pick<WebhookOps, 'getWebhook' | 'listWebhooks'>> {
  const read = reader(tx);
  // Index webhooks_by_project; ids are UUID v7, so newest id = newest webhook.
  const page = statements(tx).rows<[string, string, number], Stored>(`
    SELECT ${COLUMNS} FROM webhooks
    WHERE project_id = ? AND id < ? AND status <> 'deleted'
    ORDER BY id DESC LIMIT ?`);
  return {
    getWebhook: ({ id, projectId }) => read(id, projectId),
    listWebhooks: ({ projectId, before = LAST_ID, limit }) =>
      mapped(page(projectId, before, limit), (rows) => rows.map(whole)),
  };
}

export function webhookStatements(tx: Tx): WebhookStatements {
  return {
    ...rowStatements(tx),
    ...changeStatements(tx),
    ...endStatements(tx),
    ...secretStatements(tx),
  };
}

function rowStatements(tx: Tx) {
  const { exists, number, returned } = statements(tx);
  const insert = returned<[object], Stored>(`
    INSERT INTO webhooks (id, project_id, endpoint, endpoint_key, event_types, status,
      created_at, updated_at)
    VALUES (@id, @projectId, @endpoint, @endpointKey, @eventTypes, 'enabled', @at, @at)
    RETURNING ${COLUMNS}`);
  return {
    read: reader(tx),
    // Index webhooks_by_project; a project has at most 100.
    isTaken: exists(`
      SELECT 1 FROM webhooks
      WHERE project_id = ? AND endpoint_key = ? AND status <> 'deleted' AND id <> ?`),
    countOf: number(`SELECT COUNT(*) FROM webhooks WHERE project_id = ? AND status <> 'deleted'`),
    insert({ sealed: _, ...webhook }) {
      return mapped(insert({ ...webhook, eventTypes: JSON.stringify(webhook.eventTypes) }), whole);
    },
  } satisfies Partial<WebhookStatements>;
}

function changeStatements(tx: Tx) {
  const { write } = statements(tx);
  const setEndpoint = write(`
    UPDATE webhooks SET endpoint = @text, endpoint_key = @key WHERE id = @id`);
  const setEventTypes = write('UPDATE webhooks SET event_types = ? WHERE id = ?');
  const touch = write('UPDATE webhooks SET updated_at = ?, version = version + 1 WHERE id = ?');
  return {
    setEndpoint: (id, endpoint) => setEndpoint({ id, ...endpoint }),
    enable: write(`
      UPDATE webhooks
      SET status = 'enabled', disabled_at = NULL, disabled_reason = NULL, first_failure_at = NULL,
        last_attempt_at = NULL, consecutive_failures = 0, cap = ${CAP_MAX}, breaker_ms = 0,
        not_before = 0
      WHERE id = ?`),
    setEventTypes: (id, types) => setEventTypes(JSON.stringify(types), id),
    recountDue: dueRecount(tx),
    touch: (id, at) => touch(at, id),
  } satisfies Partial<WebhookStatements>;
}

function endStatements(tx: Tx) {
  const { changed, write } = statements(tx);
  // Indexes deliveries_due and deliveries_in_flight.
  const cancelAll = write(`
    UPDATE deliveries SET state = 'cancelled', reason = 'webhook_deleted', due = NULL, done_at = ?
    WHERE webhook_id = ? AND state ${inStates(OPEN_DELIVERY)}`);
  const cancelUnsubscribed = write(`
    UPDATE deliveries SET state = 'cancelled', reason = 'unsubscribed', due = NULL, done_at = ?
    WHERE webhook_id = ? AND state = 'pending' AND event_id IN (
      SELECT id FROM events
      WHERE id = deliveries.event_id AND type <> '${TEST_TYPE}'
        AND type <> ALL (?::TEXT[]))`);
  return {
    remove: changed(`
      UPDATE webhooks
      SET status = 'deleted', next_due = NULL, updated_at = @at, version = version + 1
      WHERE id = @id AND project_id = @projectId AND status <> 'deleted'`),
    cancelAll: (id, at) => cancelAll(at, id),
    cancelUnsubscribed: (id, types, at) => cancelUnsubscribed(at, id, types),
  } satisfies Partial<WebhookStatements>;
}

function secretStatements(tx: Tx) {
  const { number, write } = statements(tx);
  const insert = write(`
    INSERT INTO webhook_secrets (webhook_id, seq, sealed, created_at)
    VALUES (@id, @seq, @sealed, @at)`);
  const end = write(`
    UPDATE webhook_secrets SET expires_at = LEAST(expires_at, @at)
    WHERE webhook_id = @id`);
  return {
    insertSecret: (id, secret) => insert({ id, ...secret }),
    lastSeq: number('SELECT MAX(seq) FROM webhook_secrets WHERE webhook_id = ?'),
    countLive: number(`
      SELECT COUNT(*) FROM webhook_secrets
      WHERE webhook_id = ? AND (expires_at IS NULL OR expires_at > ?)`),
    endSecrets: (id, at) => end({ id, at }),
    removeEndedSecrets: write(
      'DELETE FROM webhook_secrets WHERE webhook_id = ? AND expires_at <= ?',
    ),
    removeSecrets: write('DELETE FROM webhook_secrets WHERE webhook_id = ?'),
  } satisfies Partial<WebhookStatements>;
}
