/**
 * Projects and API keys in SQLite. Every operation is one savepoint of the thread's group
 * transaction.
 */
import { must } from '../../../proto/common/must.ts';
import type { FoundApiKey, ProjectOps, ProjectRow } from '../types/projects.ts';
import type { Tx } from './engine/transaction.ts';

/**
 * Builds that one project may run at once. Ours: a build takes a whole core for its install and
 * bundling.
 */
const BUILDS_CAP = 2;

/** None of its own: those that live are counted when one is created, released ones are not. */
const SESSIONS_CAP = 2 ** 31;

const COLUMNS = `id, name, default_timeout AS defaultTimeout, concurrency,
  created_at AS createdAt, updated_at AS updatedAt`;

/**
 * Of one session that has started: whole minutes, at least one. A bound number is a REAL to SQLite:
 * the cast makes the division one of integers.
 */
export const MINUTES_USED = `MAX(1, (ended_at - started_at + 59999) / 60000)`;
const MINUTES_SO_FAR = MINUTES_USED.replace('ended_at', 'COALESCE(ended_at, CAST(@at AS INTEGER))');

export function projectOps({ db }: Tx): ProjectOps {
  const insert = db.prepare<[ProjectRow]>(`
    INSERT INTO projects (id, name, default_timeout, concurrency, created_at, updated_at)
    VALUES (@id, @name, @defaultTimeout, @concurrency, @createdAt, @updatedAt)
    ON CONFLICT (name) DO NOTHING`);
  const byName = db.prepare<[string], ProjectRow>(`SELECT ${COLUMNS} FROM projects WHERE name = ?`);
  const byId = db.prepare<[string], ProjectRow>(`SELECT ${COLUMNS} FROM projects WHERE id = ?`);
  const addQueue = db.prepare<[string, string, number]>(
    'INSERT INTO queues (kind, project_id, cap) VALUES (?, ?, ?)',
  );
  const usage = db.prepare<[{ id: string; at: number }], { minutes: number; bytes: number }>(`
    SELECT past_minutes + COALESCE(SUM(${MINUTES_SO_FAR}), 0) AS minutes,
      past_proxy_bytes + COALESCE(SUM(sessions.proxy_bytes), 0) AS bytes
    FROM projects LEFT JOIN sessions
      ON sessions.project_id = projects.id AND sessions.started_at IS NOT NULL
    WHERE projects.id = @id`);
  const insertKey = db.prepare<[object]>(`
    INSERT INTO api_keys (hash, project_id, public_id, name, created_at)
    VALUES (@hash, @projectId, @publicId, @name, @at)
    ON CONFLICT (hash) DO NOTHING`);
  const anyKey = db.prepare<[string]>('SELECT 1 FROM api_keys WHERE project_id = ? LIMIT 1');
  const keyByHash = db.prepare<[Uint8Array], FoundApiKey>(`
    SELECT project_id AS projectId, COALESCE(public_id, '') AS publicId,
      last_used_at AS lastUsedAt
    FROM api_keys WHERE hash = ? AND revoked_at IS NULL`);

  return {
    ensureProject(project) {
      if (insert.run(project).changes > 0) {
        addQueue.run('invocation', project.id, project.concurrency);
        addQueue.run('build', project.id, BUILDS_CAP);
        addQueue.run('session', project.id, SESSIONS_CAP);
      }
      return must(byName.get(project.name), 'project just made');
    },

    getProject: (id) => byId.get(id),

    projectUsage(wanted) {
      const { minutes, bytes } = must(usage.get(wanted), 'sums');
      return { browserMinutes: minutes, proxyBytes: bytes };
    },

    addApiKey(key) {
      insertKey.run(key);
    },

    hasApiKeys: (projectId) => anyKey.get(projectId) !== undefined,

    findApiKey: (hash) => keyByHash.get(hash),
  };
}
