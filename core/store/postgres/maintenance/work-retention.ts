/**
 * Retention of invocations, builds, deleted functions and sessions in PostgreSQL, in small steps.
 */
import type { RemovalStatements } from '../../operations/functions/removals.ts';
import type { SessionRetentionOps } from '../../types/maintenance.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { deleteSome } from './some.ts';

/** Ids of rows that ended before `before`, from behind `after`. */
const ended = (table: string): string => `
  SELECT id FROM ${table} WHERE id > @after AND id < @beforeId AND ended_at < @before
  ORDER BY id LIMIT @max`;

export function removalStatements(tx: Tx): RemovalStatements {
  return {
    ...logStatements(tx),
    ...invocationStatements(tx),
    ...buildStatements(tx),
    ...deletedStatements(tx),
  };
}

function logStatements(tx: Tx) {
  const { changes, write } = statements(tx);
  return {
    lines: changes<[string, number]>(
      deleteSome('log_lines', 'log_lines WHERE owner_id < ? ORDER BY owner_id LIMIT ?'),
    ),
    heads: changes<[string, number]>(
      deleteSome(
        'log_heads',
        `log_heads WHERE owner_id < ?
          AND (SELECT 1 FROM log_lines WHERE owner_id = log_heads.owner_id LIMIT 1) IS NULL
        ORDER BY owner_id LIMIT ?`,
      ),
    ),
    linesOf: changes<[string, number]>(
      deleteSome('log_lines', 'log_lines WHERE owner_id = ? LIMIT ?'),
    ),
    headOf: write<[string]>('DELETE FROM log_heads WHERE owner_id = ?'),
  };
}

/** Index idempotency_keys_by_invocation. */
function invocationStatements(tx: Tx) {
  const { values, changes, write } = statements(tx);
  return {
    invocations: values<[object], string>(ended('invocations')),
    keys: write<[string]>('DELETE FROM idempotency_keys WHERE invocation_id = ?'),
    invocation: changes<[string]>('DELETE FROM invocations WHERE id = ?'),
  };
}

function buildStatements(tx: Tx) {
  const { values, exists, changes } = statements(tx);
  return {
    builds: values<[object], string>(ended('builds')),
    // Indexes versions_by_build, versions_by_function and invocations_by_version.
    versions: values<[string], string>(`
      SELECT id FROM versions
      WHERE build_id = ?
        AND EXISTS (SELECT 1 FROM versions AS newer
          WHERE newer.function_id = versions.function_id AND newer.id > versions.id)
        AND NOT EXISTS (SELECT 1 FROM invocations WHERE version_id = versions.id)`),
    version: changes<[string]>('DELETE FROM versions WHERE id = ?'),
    hasVersion: exists<[string]>('SELECT 1 FROM versions WHERE build_id = ?'),
    build: changes<[string]>('DELETE FROM builds WHERE id = ?'),
  };
}

type VersionOf = { id: string; buildId: string };

/** Rows of deleted functions; of a running invocation there is none. */
function deletedStatements(tx: Tx) {
  const { rows, values, exists, changes } = statements(tx);
  return {
    // Index functions_deleted.
    deletedFunctions: values<[number], string>(`
      SELECT id FROM functions WHERE deleted_at IS NOT NULL ORDER BY deleted_at LIMIT ?`),
    deletedOne: values<[string], string>(
      'SELECT id FROM functions WHERE id = ? AND deleted_at IS NOT NULL',
    ),
    deletedFunction: changes<[string]>('DELETE FROM functions WHERE id = ?'),
    // Index versions_by_function.
    versionsOf: rows<[string, number], VersionOf>(
      'SELECT id, build_id AS "buildId" FROM versions WHERE function_id = ? ORDER BY id LIMIT ?',
    ),
    // Index versions_by_build.
    hasOther: exists<[string, string]>('SELECT 1 FROM versions WHERE build_id = ? AND id <> ?'),
    // Index invocations_by_version.
    invocationsOf: values<[string, number], string>(
      'SELECT id FROM invocations WHERE version_id = ? ORDER BY id LIMIT ?',
    ),
    blobsOf: values<[object], string>(`
      SELECT id FROM blobs WHERE id IN (
        SELECT archive_blob_id FROM builds WHERE id = @id
        UNION SELECT bundle_blob_id FROM builds WHERE id = @id)`),
    // Indexes builds_by_archive and builds_by_bundle.
    blob: values<[string], string>(`
      DELETE FROM blobs WHERE id = ?
        AND NOT EXISTS (SELECT 1 FROM builds WHERE archive_blob_id = blobs.id)
        AND NOT EXISTS (SELECT 1 FROM builds WHERE bundle_blob_id = blobs.id)
      RETURNING id`),
  };
}

/** Tables that refer to a session, each with an index that begins with its id. */
const REFERRING = ['invocations', 'session_logs', 'session_log_heads', 'recordings', 'downloads'];

export function sessionRetentionOps(tx: Tx): InReads<SessionRetentionOps> {
  const { values, write } = statements(tx);
  const old = values<[object], string>(ended('sessions'));
  const isFree = REFERRING.map(
    (table) => `NOT EXISTS (SELECT 1 FROM ${table} WHERE session_id = ids.id)`,
  ).join(' AND ');
  const notReferred = values<[string[]], string>(`
    SELECT id FROM UNNEST(?::TEXT[]) AS ids (id) WHERE ${isFree}`);
  const parts = ['session_metadata', 'session_labels', 'handoffs'].map((table) =>
    write<[string[]]>(`DELETE FROM ${table} WHERE session_id = ANY(?::TEXT[])`),
  );
  const sessions = write<[string[]]>('DELETE FROM sessions WHERE id = ANY(?::TEXT[])');

  return {
    *purgeSessions(purge) {
      const ids = yield* old(purge);
      const free = yield* notReferred(ids);
      for (const part of parts) part(free);
      sessions(free);
      tx.crashPoint('purge-sessions');
      return { removed: free.length, last: ids.length < purge.max ? undefined : ids.at(-1) };
    },
  };
}
