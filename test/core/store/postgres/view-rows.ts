/** Rows of each kind, with the shapes that statements distinguish; the same for both engines. */
import * as assert from 'uvu/assert';
import { newId } from '../../../../core/common/ids.ts';
import { readCoreConfig } from '../../../../core/config.ts';
import { must } from '../../../../proto/common/must.ts';
import {
  addFunctions,
  addInvocations,
  addSessions,
  FIRST_MS,
  HOUR_MS,
  INVOCATION,
  idOf,
  type Lists,
  SESSION,
} from '../../console/projects.ts';

export const ROWS = 3_000;
export const CONTEXT = idOf('01930000', 1);
export const LAST_MS = FIRST_MS + 400 * 24 * HOUR_MS;
const blob = (n: number) => idOf('01940000', n);

export type Known = Awaited<ReturnType<typeof fill>>;

/** Sessions, functions and their runs, then what belongs to them. */
export async function fill(lists: Lists) {
  const { db, projectId } = lists;
  addSessions(lists, projectId, ROWS);
  const published = addFunctions(lists, projectId, ['Title', 'other', 'gone']);
  const [of, other, gone] = published.map((one) => must(one, 'function'));
  if (!of || !other || !gone) throw new Error('three functions');
  addInvocations(lists, projectId, { of, from: 0, count: 1_000 });
  addInvocations(lists, projectId, { of: other, from: 1_000, count: 500 });
  addInvocations(lists, projectId, { of: gone, from: 1_500, count: 20 });
  const otherProject = await lists.addProject('theirs');
  db.exec(workRows(gone.functionId));
  db.exec(fileRows(projectId));
  db.exec(secretRows(projectId, of.functionId));
  db.exec(projectRows(projectId, of.functionId));
  const webhookIds = await addDeliveries(lists);
  const events = lists.rows('SELECT id FROM events ORDER BY seq').map(({ id }) => String(id));
  return { of, otherProject, webhookIds, events };
}

function workRows(goneId: string): string {
  return `
    UPDATE functions SET deleted_at = 1 WHERE id = '${goneId}';
    UPDATE invocations SET steps = '[["open",0,10,false]]' WHERE id = '${idOf(INVOCATION, 7)}';
    UPDATE invocations SET schedule_id = 'schedule', scheduled_for = 5
    WHERE id = '${idOf(INVOCATION, 8)}';
    UPDATE sessions SET end_reason = 'the runner was lost' WHERE status = 'ERROR';
    UPDATE sessions SET status = 'RUNNING', ended_at = NULL, started_at = ${FIRST_MS},
      params = '{"extensionId":"${idOf('01960000', 1).toUpperCase()}","browserSettings":' ||
        '{"context":{"id":"${CONTEXT}","persist":true}},"a":"\\u0000\\ud800 \\\\ud800"}'
    WHERE id >= '${idOf(SESSION, ROWS - 5)}';
    INSERT INTO jobs (id, kind, project_id, state, runner_id, instance_id, lease_id, lease_until,
      expires_at, released_at, created_at)
    SELECT id, 'session', project_id, 'running', 'runner', 'first', 'lease-' || id, 1, 2,
      IIF(id = '${idOf(SESSION, ROWS - 1)}', 3, NULL), 4
    FROM sessions WHERE status = 'RUNNING';
    UPDATE queues SET running = 5, vtime = 5 WHERE kind = 'session';`;
}

function fileRows(projectId: string): string {
  return `
    INSERT INTO labels (id, project_id, name, name_key, created_at, updated_at) VALUES
      ('label-1', '${projectId}', 'Ärger', 'ärger', 1, 1), ('label-2', '${projectId}', 'b', 'b',
        2, 2);
    INSERT INTO session_labels (label_id, session_id, project_id)
    SELECT labels.id, sessions.id, sessions.project_id FROM labels, sessions
    WHERE sessions.id < '${idOf(SESSION, 40)}' OR labels.id = 'label-2';
    INSERT INTO session_metadata (project_id, path, value, session_id)
    SELECT project_id, '["order"]', json_extract(user_metadata, '$.order'), id FROM sessions;
    INSERT INTO blobs (id, project_id, kind, size, sha256, created_at) VALUES
      ('${blob(1)}', '${projectId}', 'DOWNLOAD', 5, 'aa', 1),
      ('${blob(2)}', '${projectId}', 'RECORDING', 6, 'bb', 2),
      ('${blob(3)}', '${projectId}', 'EXTENSION', 7, 'cc', 3),
      ('${blob(4)}', '${projectId}', 'CONTEXT', 8, 'dd', 4),
      ('${blob(5)}', '${projectId}', 'BUNDLE', 9, 'ee', 5);
    INSERT INTO downloads (id, session_id, project_id, blob_id, filename, mime_type, size, sha256,
      created_at)
    VALUES ('download', '${idOf(SESSION, 1)}', '${projectId}', '${blob(1)}', 'Report.pdf',
      'application/pdf', 5, 'aa', ${FIRST_MS});
    INSERT INTO recordings (session_id, page_id, project_id, lease_id, url, start_ms, end_ms,
      created_at, completed_at)
    VALUES ('${idOf(SESSION, 1)}', 0, '${projectId}', 'lease', 'https://example.com/Page', 0, 10,
      ${FIRST_MS}, 9);
    INSERT INTO recording_parts (session_id, page_id, number, blob_id, size, start_ms, end_ms)
    VALUES ('${idOf(SESSION, 1)}', 0, 1, '${blob(2)}', 6, 0, 10);
    INSERT INTO extensions (id, project_id, blob_id, file_name, created_at, updated_at, deleted_at)
    VALUES ('${idOf('01960000', 1)}', '${projectId}', '${blob(3)}', 'a.zip', 5, 5, 6);`;
}

function secretRows(projectId: string, functionId: string): string {
  return `
    INSERT INTO contexts (id, project_id, name, name_key, status, key_pair_id, public_key,
      private_key, created_at, updated_at, blob_id, saved_at, save_seq)
    VALUES ('${CONTEXT}', '${projectId}', 'Shop', 'shop', 'active', 'pair', 'pem', x'01', 5, 5,
      '${blob(4)}', 6, 2);
    INSERT INTO certificates (id, project_id, pem, created_at, updated_at, deleted_at) VALUES
      ('certificate', '${projectId}', 'pem', 1, 1, NULL), ('old', '${projectId}', 'pem', 1, 1, 2);
    INSERT INTO log_lines (owner_id, number, level, message, at)
    VALUES ('${idOf(INVOCATION, 3)}', 0, 'log', 'hello', 1.5), ('0', 0, 'log', 'old', 1);
    INSERT INTO log_heads (owner_id, next, bytes, cut) VALUES ('0', 1, 3, 0);
    INSERT INTO session_logs (session_id, number, entries, count, size, at)
    VALUES ('${idOf(SESSION, 2)}', 0, x'0102', 1, 2, ${FIRST_MS});
    INSERT INTO secret_key_pairs (id, project_id, public_key, private_key, created_at)
    VALUES ('pair', '${projectId}', x'00', x'01', 0);
    INSERT INTO secrets (id, project_id, secret_key, key_pair_id, sealed, created_at, updated_at)
    VALUES ('secret', '${projectId}', 'TOKEN', 'pair', x'010203', 1, 2);
    INSERT INTO function_secrets (function_id, secret_id) VALUES ('${functionId}', 'secret');
    INSERT INTO handoffs (id, project_id, session_id, status, instructions, key_id, created_at,
      expires_at, ended_at)
    VALUES ('handoff', '${projectId}', '${idOf(SESSION, 1)}', 'EXPIRED', 'do', '', 1, 2, 3);`;
}

function projectRows(projectId: string, functionId: string): string {
  return `
    INSERT INTO api_keys (hash, project_id, public_id, name, created_at, revoked_at, made_by) VALUES
      (x'01', '${projectId}', 'one', 'a', 5, NULL, NULL),
      (x'02', '${projectId}', 'two', 'b', 5, 6, 'one'), (x'03', '${projectId}', 'three', 'c', 5,
        6, '');
    INSERT INTO console_logins (hash, project_id, key_id, created_at, expires_at)
    VALUES (x'05', '${projectId}', 'one', 1, ${LAST_MS}), (x'06', '${projectId}', 'two', 1,
      ${LAST_MS});
    INSERT INTO audit_events (id, created_at, login, key_id, operation, object_id, project_id,
      address)
    VALUES ('audit-1', 5, 'key', 'one', 'RevokeApiKey', 'two', '${projectId}', '192.0.2.1'),
      ('audit-2', 5, 'operator', NULL, 'CreateProject', NULL, NULL, '192.0.2.2');
    INSERT INTO usage_days (project_id, day, sessions, minutes) VALUES ('${projectId}', 20500, 2,
      30);
    INSERT INTO usage_function_days (project_id, day, function_id, runs) VALUES
      ('${projectId}', 20500, '${functionId}', 4), ('${projectId}', 20500, 'removed', 2);
    INSERT INTO quotas (project_id, quota, value) VALUES ('${projectId}', 'contexts', 7);
    INSERT INTO key_pairs (id, public_key, private_key, created_at) VALUES ('k', 'pem', x'09', 1);`;
}

/** Deliveries in all states: some sent, one webhook failing. */
async function addDeliveries({ store, emit, projectId }: Lists): Promise<string[]> {
  const ids = [newId(), newId()];
  const type = 'functions.invocations.completed';
  for (const [at, id] of ids.entries()) {
    const endpoint = `https://example.com/Hook-${at}`;
    const row = { id, projectId, endpoint, endpointKey: endpoint, eventTypes: [type] };
    await store.createWebhook({ ...row, sealed: Buffer.from('sealed'), at: FIRST_MS }, 100);
  }
  for (let n = 0; n < 30; n += 1) {
    emit({
      type,
      resourceId: idOf(INVOCATION, n),
      projectId,
      data: {},
      at: FIRST_MS + n * HOUR_MS,
    });
  }
  const at = FIRST_MS + 40 * HOUR_MS;
  const sender = { senderId: 'one', instanceId: newId() };
  const wanted = { max: 40, perProjectMax: 64, ratePerS: 100, jitter: 1, signedAtS: 1 };
  const { claims } = await store.claimDeliveries({
    ...sender,
    ...wanted,
    at,
    leaseUntil: at + HOUR_MS,
  });
  assert.ok(claims.length > 10);
  const ends = claims.slice(0, -2).map(({ deliveryId, claimSeq, attemptId, webhookId }, n) => {
    const failed = { outcome: 'http', status: 500, error: 'no' } as const;
    const delivered = { outcome: 'ok', status: 204, error: '' } as const;
    const end = webhookId === ids[0] ? delivered : failed;
    const rest = { latencyMs: n, response: Buffer.from('answer'), retryAfterS: null, jitter: 1 };
    return { deliveryId, claimSeq, attemptId, ...end, ...rest, abortMessage: false };
  });
  await store.reportAttempts({ ends, at: at + 1_000, rule: readCoreConfig({}).webhookRule });
  return ids;
}
