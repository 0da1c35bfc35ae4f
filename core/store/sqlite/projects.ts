/**
 * Projects and API keys in SQLite. Every operation is one savepoint of the thread's group
 * transaction.
 */
import { must } from '../../../proto/common/must.ts';
import type {
  ApiKeyRow,
  FoundApiKey,
  LimitChange,
  OperatedRow,
  OperatorOps,
  ProjectOps,
  ProjectRow,
} from '../types/projects.ts';
import { preparedOnce, type Tx } from './engine/transaction.ts';

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

export const projectOps = preparedOnce(({ db }: Tx): ProjectOps => {
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
});

/** Last use is kept to the minute: a key in use is written once in it. */
const MINUTE_MS = 60_000;

const KEY_COLUMNS = `public_id AS id, project_id AS projectId, name, created_at AS createdAt,
  last_used_at AS lastUsedAt, revoked_at AS revokedAt`;

type Counted = Omit<OperatedRow, 'browserMinutes' | 'proxyBytes'>;

export function operatorOps(tx: Tx): OperatorOps {
  const projects = projectOps(tx);
  const rows = projectRows(tx, projects.projectUsage);
  const limits = limitChanges(tx);

  return {
    ...keyOps(tx),
    addProject({ project, limits: wanted, at }) {
      const made = projects.ensureProject(project);
      if (made.id !== project.id) return undefined;
      limits({ id: made.id, at, ...wanted });
      return rows.one(made.id, at);
    },
    listProjects: ({ at }) => rows.all(at),
    findProject: rows.find,
    setLimits({ project, limits: wanted, at }) {
      const found = rows.find(project);
      if (!found) return undefined;
      limits({ id: found.id, at, ...wanted });
      // More may run now than before.
      tx.wake('work:invocation');
      return rows.one(found.id, at);
    },
  };
}

function projectRows({ db }: Tx, usageOf: ReturnType<typeof projectOps>['projectUsage']) {
  const sql = `
    SELECT id, name, default_timeout AS defaultTimeout, concurrency,
      created_at AS createdAt, updated_at AS updatedAt,
      queues.ready_max AS queueMax, queues.cap AS invocationsMax,
      queues.running AS invocations, queues.ready AS queued,
      (SELECT COUNT(*) FROM jobs WHERE jobs.project_id = projects.id
        AND jobs.kind = 'session' AND jobs.released_at IS NULL) AS sessions
    FROM projects
    JOIN queues ON queues.project_id = projects.id AND queues.kind = 'invocation'`;
  const all = db.prepare<[], Counted>(`${sql} ORDER BY id`);
  const one = db.prepare<[string], Counted>(`${sql} WHERE id = ?`);
  const find = db.prepare<[string, string], ProjectRow>(`
    SELECT id, name, default_timeout AS defaultTimeout, concurrency,
      created_at AS createdAt, updated_at AS updatedAt
    FROM projects WHERE id = ? OR name = ?`);
  const used = (row: Counted, at: number) => ({ ...row, ...usageOf({ id: row.id, at }) });
  return {
    all: (at: number) => all.all().map((row) => used(row, at)),
    one: (id: string, at: number) => used(must(one.get(id), 'project just found'), at),
    find: (project: string) => find.get(project, project),
  };
}

function limitChanges({ db }: Tx) {
  const project = db.prepare<[object]>(`
    UPDATE projects SET concurrency = COALESCE(@sessions, concurrency), updated_at = @at
    WHERE id = @id`);
  const queues = db.prepare<[object]>(`
    UPDATE queues SET ready_max = COALESCE(@queue, ready_max),
      cap = CASE WHEN kind = 'invocation' THEN COALESCE(@invocations, cap) ELSE cap END
    WHERE project_id = @id AND kind IN ('invocation', 'build')`);
  const quota = db.prepare<[object]>(`
    INSERT INTO quotas (project_id, quota, value) VALUES (@id, @quota, @value)
    ON CONFLICT (project_id, quota) DO UPDATE SET value = @value`);
  return (wanted: { id: string; at: number } & LimitChange): void => {
    const { sessions = null, invocations = null, queue = null, quotas, id, at } = wanted;
    project.run({ id, at, sessions });
    queues.run({ id, invocations, queue });
    for (const one of quotas) quota.run({ id, ...one });
  };
}

type KeyNames = 'listApiKeys' | 'getApiKey' | 'revokeApiKey' | 'useApiKey' | 'revokedKeys';

function keyOps({ db, wake }: Tx): Pick<OperatorOps, KeyNames> {
  const list = db.prepare<[object], ApiKeyRow>(`
    SELECT ${KEY_COLUMNS} FROM api_keys
    WHERE @projectId IS NULL OR project_id = @projectId
    ORDER BY created_at, rowid`);
  const byId = db.prepare<[string], ApiKeyRow>(`
    SELECT ${KEY_COLUMNS} FROM api_keys WHERE public_id = ?`);
  const revoke = db.prepare<[object]>(`
    UPDATE api_keys SET revoked_at = @at WHERE public_id = @id AND revoked_at IS NULL`);
  const use = db.prepare<[object]>('UPDATE api_keys SET last_used_at = @at WHERE public_id = @id');
  // Index api_keys_by_revocation.
  const revoked = db
    .prepare<[number], string>('SELECT public_id FROM api_keys WHERE revoked_at >= ?')
    .pluck();

  return {
    listApiKeys: (projectId) => list.all({ projectId: projectId ?? null }),
    getApiKey: (id) => byId.get(id),
    revokeApiKey(wanted) {
      if (revoke.run(wanted).changes > 0) wake('revocations');
      return byId.get(wanted.id);
    },
    useApiKey({ id, at }) {
      use.run({ id, at: at - (at % MINUTE_MS) });
    },
    revokedKeys: (since) => revoked.all(since),
  };
}
