/** Projects and API keys in SQLite. Rules of projects: core/store/operations/projects.ts. */
import { must } from '../../../proto/common/must.ts';
import { BUILT_IN } from '../../common/built-in.ts';
import type { ProjectStatements } from '../operations/projects.ts';
import type {
  ApiKeyRow,
  OperatedRow,
  OperatorOps,
  ProjectOps,
  ProjectRow,
} from '../types/projects.ts';
import { queries, statements } from './engine/statements.ts';
import { found } from './engine/steps.ts';
import { preparedOnce, type Tx } from './engine/transaction.ts';

const COLUMNS = `id, name, default_timeout AS defaultTimeout, concurrency,
  created_at AS createdAt, updated_at AS updatedAt`;
/** The service's own project has no keys and no limits. */
const BY_ID_OR_NAME = `
  SELECT ${COLUMNS} FROM projects WHERE (id = ? OR name = ?) AND id <> '${BUILT_IN.projectId}'`;

/**
 * Of one session that runs: whole minutes, at least one. A bound number is a REAL to SQLite: the
 * cast makes the division one of integers.
 */
const MINUTES_SO_FAR = 'MAX(1, (CAST(@at AS INTEGER) - started_at + 59999) / 60000)';

export function projectOps(tx: Tx): Omit<ProjectOps, 'ensureProject'> {
  const { row, exists, write } = queries(tx);
  return {
    getProject: row(`SELECT ${COLUMNS} FROM projects WHERE id = ?`),
    projectUsage: usage(tx),
    addApiKey: write(`
      INSERT INTO api_keys (hash, project_id, public_id, name, created_at)
      VALUES (@hash, @projectId, @publicId, @name, @at)
      ON CONFLICT (hash) DO NOTHING`),
    hasApiKeys: exists('SELECT 1 FROM api_keys WHERE project_id = ? LIMIT 1'),
    findApiKey: row(`
      SELECT project_id AS projectId, COALESCE(public_id, '') AS publicId,
        last_used_at AS lastUsedAt
      FROM api_keys WHERE hash = ? AND revoked_at IS NULL`),
  };
}

const usage = preparedOnce((tx: Tx): ProjectOps['projectUsage'] => {
  // A trigger adds each session that ends. Index sessions_open_by_project.
  const sums = queries(tx).row<[object], { browserMinutes: number; proxyBytes: number }>(`
    SELECT past_minutes + COALESCE(SUM(${MINUTES_SO_FAR}), 0) AS browserMinutes,
      past_proxy_bytes + COALESCE(SUM(sessions.proxy_bytes), 0) AS proxyBytes
    FROM projects LEFT JOIN sessions INDEXED BY sessions_open_by_project
      ON sessions.project_id = projects.id AND sessions.status IN ('PENDING', 'RUNNING')
        AND sessions.started_at IS NOT NULL
    WHERE projects.id = @id`);
  return (wanted) => must(sums(wanted), 'sums');
});

export function projectStatements(tx: Tx): ProjectStatements {
  const { row, changed, write } = statements(tx);
  const find = row<[string, string], ProjectRow>(BY_ID_OR_NAME);
  const project = write<[object]>(`
    UPDATE projects SET concurrency = COALESCE(@sessions, concurrency), updated_at = @at
    WHERE id = @id`);
  const queues = write<[object]>(`
    UPDATE queues SET ready_max = COALESCE(@queue, ready_max),
      cap = CASE WHEN kind = 'invocation' THEN COALESCE(@invocations, cap) ELSE cap END
    WHERE project_id = @id AND kind IN ('invocation', 'build')`);
  const quota = write<[object]>(`
    INSERT INTO quotas (project_id, quota, value) VALUES (@id, @quota, @value)
    ON CONFLICT (project_id, quota) DO UPDATE SET value = @value`);
  const { one } = operatedProjects(tx);
  return {
    insert: changed(`
      INSERT INTO projects (id, name, default_timeout, concurrency, created_at, updated_at)
      VALUES (@id, @name, @defaultTimeout, @concurrency, @createdAt, @updatedAt)
      ON CONFLICT (name) DO NOTHING`),
    byName: row(`SELECT ${COLUMNS} FROM projects WHERE name = ?`),
    find: (project) => find(project, project),
    insertQueue: write('INSERT INTO queues (kind, project_id, cap) VALUES (?, ?, ?)'),
    setLimits({ quotas, ...limits }) {
      project(limits);
      queues(limits);
      for (const one of quotas) quota({ id: limits.id, ...one });
    },
    operated: (id, at) => found(one(id, at)),
  };
}

const operatedProjects = preparedOnce((tx: Tx) => {
  type Counted = Omit<OperatedRow, 'browserMinutes' | 'proxyBytes'>;
  const { row, rows } = queries(tx);
  const usageOf = usage(tx);
  const sql = `
    SELECT ${COLUMNS}, queues.ready_max AS queueMax, queues.cap AS invocationsMax,
      queues.running AS invocations, queues.ready AS queued,
      (SELECT COUNT(*) FROM jobs WHERE jobs.project_id = projects.id
        AND jobs.kind = 'session' AND jobs.released_at IS NULL) AS sessions
    FROM projects
    JOIN queues ON queues.project_id = projects.id AND queues.kind = 'invocation'`;
  const all = rows<[], Counted>(`${sql} ORDER BY id`);
  const one = row<[string], Counted>(`${sql} WHERE id = ?`);
  const used = (project: Counted, at: number): OperatedRow => ({
    ...project,
    ...usageOf({ id: project.id, at }),
  });
  return {
    all: (at: number) => all().map((project) => used(project, at)),
    one: (id: string, at: number) => used(must(one(id), 'project just found'), at),
  };
});

/** In milliseconds. The last use is stored to the minute: a key in use is written once in it. */
const MINUTE_MS = 60_000;

const KEY_COLUMNS = `public_id AS id, project_id AS projectId, name, created_at AS createdAt,
  last_used_at AS lastUsedAt, revoked_at AS revokedAt`;

export function operatorOps(tx: Tx): Omit<OperatorOps, 'addProject' | 'setLimits'> {
  const { row, rows, values, changes, write } = queries(tx);
  const projects = operatedProjects(tx);
  const getApiKey = row<[string], ApiKeyRow>(
    `SELECT ${KEY_COLUMNS} FROM api_keys WHERE public_id = ?`,
  );
  const find = row<[string, string], ProjectRow>(BY_ID_OR_NAME);
  const revoke = changes<[object]>(`
    UPDATE api_keys SET revoked_at = @at WHERE public_id = @id AND revoked_at IS NULL`);
  const use = write('UPDATE api_keys SET last_used_at = @at WHERE public_id = @id');
  const list = rows<[object], ApiKeyRow>(`
    SELECT ${KEY_COLUMNS} FROM api_keys
    WHERE @projectId IS NULL OR project_id = @projectId
    ORDER BY created_at, rowid`);
  return {
    listProjects: ({ at }) => projects.all(at),
    findProject: (project) => find(project, project),
    listApiKeys: (projectId) => list({ projectId }),
    getApiKey,
    revokeApiKey(wanted) {
      if (revoke(wanted) > 0) tx.wake('revocations');
      return getApiKey(wanted.id);
    },
    useApiKey: ({ id, at }) => use({ id, at: at - (at % MINUTE_MS) }),
    // Index api_keys_by_revocation.
    revokedKeys: values('SELECT public_id FROM api_keys WHERE revoked_at >= ?'),
  };
}
