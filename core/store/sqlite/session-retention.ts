/** Retention of sessions in SQLite: few in an operation, so that nobody waits for it. */
import type { SessionRetentionOps } from '../types/session-retention.ts';
import type { Tx } from './engine/transaction.ts';
import { MINUTES_USED } from './projects.ts';

/** What refers to a session, each by an index that begins with its id. */
const REFERRING = ['invocations', 'session_logs', 'session_log_heads', 'recordings', 'downloads'];

export function sessionRetentionOps({ db, crashPoint }: Tx): SessionRetentionOps {
  const old = db
    .prepare<[object], string>(`
      SELECT id FROM sessions WHERE id > @after AND id < @beforeId AND ended_at < @before
      ORDER BY id LIMIT @max`)
    .pluck();
  const isReferred = REFERRING.map(
    (table) => `EXISTS (SELECT 1 FROM ${table} WHERE session_id = @id)`,
  );
  const kept = db.prepare<[object], number>(`SELECT ${isReferred.join(' OR ')}`).pluck();
  const count = db.prepare<[string]>(`
    UPDATE projects SET past_minutes = past_minutes + used.minutes,
      past_proxy_bytes = past_proxy_bytes + used.bytes
    FROM (SELECT project_id, IIF(started_at IS NULL, 0, ${MINUTES_USED}) AS minutes,
        IIF(started_at IS NULL, 0, proxy_bytes) AS bytes
      FROM sessions WHERE id = ?) AS used
    WHERE projects.id = used.project_id`);
  const metadata = db.prepare<[string]>('DELETE FROM session_metadata WHERE session_id = ?');
  const session = db.prepare<[string]>('DELETE FROM sessions WHERE id = ?');

  return {
    purgeSessions(purge) {
      const ids = old.all(purge);
      const free = ids.filter((id) => kept.get({ id }) === 0);
      for (const id of free) {
        count.run(id);
        metadata.run(id);
        session.run(id);
      }
      crashPoint('purge-sessions');
      return { removed: free.length, last: ids.length < purge.max ? undefined : ids.at(-1) };
    },
  };
}
