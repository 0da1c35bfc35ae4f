/**
 * Retention of work in SQLite: few rows in an operation, oldest first, found by their ids, which
 * are sorted by time. The blobs of a build that goes are then nobody's: the sweep removes them.
 */
import type { WorkRetentionOps } from '../types/work-retention.ts';
import type { Tx } from './engine/transaction.ts';

export function workRetentionOps(tx: Tx): WorkRetentionOps {
  const sql = { ...prepareLogs(tx), ...prepareInvocations(tx), ...prepareBuilds(tx) };

  /** One build: its versions that nobody needs, then itself when none is left. */
  function purgeBuild(id: string): boolean {
    for (const versionId of sql.versions.all(id)) sql.version.run(versionId);
    if (sql.build.run(id).changes === 0) return false;
    sql.linesOf.run(id, -1);
    sql.headOf.run(id);
    return true;
  }

  /** One invocation, its log first, so that an operation may stop anywhere; how many rows. */
  function purgeInvocation(id: string, max: number): number {
    const lines = sql.linesOf.run(id, max).changes;
    if (lines >= max) return max;
    sql.keys.run(id);
    sql.headOf.run(id);
    sql.invocation.run(id);
    return lines + 1;
  }

  return {
    purgeLogs({ beforeId, max }) {
      const lines = sql.lines.run(beforeId, max).changes;
      const heads = lines < max ? sql.heads.run(beforeId, max - lines).changes : 0;
      tx.crashPoint('purge-logs');
      return lines + heads;
    },
    purgeInvocations(purge) {
      let left = purge.max;
      for (const id of sql.invocations.all({ after: '', ...purge })) {
        left -= purgeInvocation(id, left);
        if (left <= 0) break;
      }
      tx.crashPoint('purge-invocations');
      return purge.max - left;
    },
    purgeBuilds(purge) {
      const ids = sql.builds.all(purge);
      const removed = ids.filter(purgeBuild).length;
      tx.crashPoint('purge-builds');
      return { removed, last: ids.length < purge.max ? undefined : ids.at(-1) };
    },
  };
}

function prepareLogs({ db }: Tx) {
  return {
    lines: db.prepare<[string, number]>(`
      DELETE FROM log_lines WHERE (owner_id, number) IN (
        SELECT owner_id, number FROM log_lines WHERE owner_id < ? ORDER BY owner_id LIMIT ?)`),
    heads: db.prepare<[string, number]>(`
      DELETE FROM log_heads WHERE owner_id IN (
        SELECT owner_id FROM log_heads WHERE owner_id < ?
          AND NOT EXISTS (SELECT 1 FROM log_lines WHERE owner_id = log_heads.owner_id)
        ORDER BY owner_id LIMIT ?)`),
    linesOf: db.prepare<[string, number]>(`
      DELETE FROM log_lines WHERE (owner_id, number) IN (
        SELECT owner_id, number FROM log_lines WHERE owner_id = ? LIMIT ?)`),
    headOf: db.prepare<[string]>('DELETE FROM log_heads WHERE owner_id = ?'),
  };
}

/** Index idempotency_keys_by_invocation. */
function prepareInvocations({ db }: Tx) {
  return {
    invocations: db
      .prepare<[object], string>(`
        SELECT id FROM invocations WHERE id > @after AND id < @beforeId AND ended_at < @before
        ORDER BY id LIMIT @max`)
      .pluck(),
    keys: db.prepare<[string]>('DELETE FROM idempotency_keys WHERE invocation_id = ?'),
    invocation: db.prepare<[string]>('DELETE FROM invocations WHERE id = ?'),
  };
}

function prepareBuilds({ db }: Tx) {
  return {
    builds: db
      .prepare<[object], string>(`
        SELECT id FROM builds WHERE id > @after AND id < @beforeId AND ended_at < @before
        ORDER BY id LIMIT @max`)
      .pluck(),
    // Indexes versions_by_build, versions_by_function and invocations_by_version.
    versions: db
      .prepare<[string], string>(`
        SELECT id FROM versions
        WHERE build_id = ?
          AND EXISTS (SELECT 1 FROM versions AS newer
            WHERE newer.function_id = versions.function_id AND newer.id > versions.id)
          AND NOT EXISTS (SELECT 1 FROM invocations WHERE version_id = versions.id)`)
      .pluck(),
    version: db.prepare<[string]>('DELETE FROM versions WHERE id = ?'),
    build: db.prepare<[string]>(`
      DELETE FROM builds
      WHERE id = ? AND NOT EXISTS (SELECT 1 FROM versions WHERE build_id = builds.id)`),
  };
}
