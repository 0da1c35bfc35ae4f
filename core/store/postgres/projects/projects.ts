/** Projects and API keys in PostgreSQL. Rules of projects: core/store/operations/projects.ts. */
import { must } from '../../../../proto/common/must.ts';
import { BUILT_IN } from '../../../common/built-in.ts';
import type { ProjectStatements } from '../../operations/projects.ts';
import type { Read, Steps } from '../../operations/steps.ts';
import type {
  ApiKeyRow,
  OperatedRow,
  OperatorOps,
  ProjectOps,
  ProjectRow,
} from '../../types/projects.ts';
import { statements } from '../engine/statements.ts';
import { type InReads, mapped } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

const COLUMNS = `id, name, default_timeout AS "defaultTimeout", concurrency,
  created_at AS "createdAt", updated_at AS "updatedAt"`;
/** The service's own project has no keys and no limits. */
const BY_ID_OR_NAME = `
  SELECT ${COLUMNS} FROM projects WHERE (id = ? OR name = ?) AND id <> '${BUILT_IN.projectId}'`;

/** Of one session that runs: whole minutes, at least one. */
const MINUTES_SO_FAR = 'GREATEST(1, (@at::BIGINT - started_at + 59999) / 60000)';

export function projectOps(tx: Tx): InReads<Omit<ProjectOps, 'ensureProject'>> {
  const { row, exists, done } = statements(tx);
  return {
    getProject: row(`SELECT ${COLUMNS} FROM projects WHERE id = ?`),
    projectUsage: usage(tx),
    addApiKey: done(`
      INSERT INTO api_keys (hash, project_id, public_id, name, created_at)
      VALUES (@hash, @projectId, @publicId, @name, @at)
      ON CONFLICT (hash) DO NOTHING`),
    hasApiKeys: exists('SELECT 1 FROM api_keys WHERE project_id = ? LIMIT 1'),
    findApiKey: row(`
      SELECT project_id AS "projectId", COALESCE(public_id, '') AS "publicId",
        last_used_at AS "lastUsedAt"
      FROM api_keys WHERE hash = ? AND revoked_at IS NULL`),
  };
}

function usage(tx: Tx): InReads<ProjectOps>['projectUsage'] {
  // A trigger adds each session that ends. Index sessions_open_by_project.
  const sums = statements(tx).row<[object], { browserMinutes: number; proxyBytes: number }>(`
    SELECT past_minutes + COALESCE(SUM(${MINUTES_SO_FAR}) FILTER (WHERE sessions.id IS NOT NULL),
    0)::BIGINT AS "browserMinutes",
      past_proxy_bytes + COALESCE(SUM(sessions.proxy_bytes), 0)::BIGINT AS "proxyBytes"
    FROM projects LEFT JOIN sessions
      ON sessions.project_id = projects.id AND sessions.status IN ('PENDING', 'RUNNING')
        AND sessions.started_at IS NOT NULL
    WHERE projects.id = @id GROUP BY projects.id`);
  return (wanted) => mapped(sums(wanted), (found) => must(found, 'sums'));
}

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
    operated: one,
  };
}

function operatedProjects(tx: Tx) {
  type Counted = Omit<OperatedRow, 'browserMinutes' | 'proxyBytes'>;
  const { row, rows } = statements(tx);
  const usageOf = usage(tx);
  const sql = `
    SELECT ${COLUMNS}, queues.ready_max AS "queueMax", queues.cap AS "invocationsMax",
      queues.running AS invocations, queues.ready AS queued,
      (SELECT COUNT(*) FROM jobs WHERE jobs.project_id = projects.id
        AND jobs.kind = 'session' AND jobs.released_at IS NULL) AS sessions
    FROM projects
    JOIN queues ON queues.project_id = projects.id AND queues.kind = 'invocation'`;
  const all = rows<[], Counted>(`${sql} ORDER BY id`);
  const one = row<[string], Counted>(`${sql} WHERE id = ?`);
  const used = (project: Counted, at: number): Read<OperatedRow> =>
    mapped(usageOf({ id: project.id, at }), (usage) => ({ ...project, ...usage }));
  return {
    *all(at: number): Steps<OperatedRow[]> {
      const reads = (yield* all()).map((project) => used(project, at));
      const found: OperatedRow[] = [];
      for (const read of reads) found.push(yield* read);
      return found;
    },
    *one(id: string, at: number): Steps<OperatedRow> {
      return yield* used(must(yield* one(id), 'project just found'), at);
    },
  };
}

/** In milliseconds. The last use is stored to the minute: a key in use is written once in it. */
const MINUTE_MS = 60_000;

const KEY_COLUMNS = `public_id AS id, project_id AS "projectId", name, created_at AS "createdAt",
  last_used_at AS "lastUsedAt", revoked_at AS "revokedAt"`;

export function operatorOps(tx: Tx): InReads<Omit<OperatorOps, 'addProject' | 'setLimits'>> {
  const { row, rows, values, changes, done } = statements(tx);
  const projects = operatedProjects(tx);
  const getApiKey = row<[string], ApiKeyRow>(
    `SELECT ${KEY_COLUMNS} FROM api_keys WHERE public_id = ?`,
  );
  const find = row<[string, string], ProjectRow>(BY_ID_OR_NAME);
  const revoke = changes<[object]>(`
    UPDATE api_keys SET revoked_at = @at WHERE public_id = @id AND revoked_at IS NULL`);
  const use = done('UPDATE api_keys SET last_used_at = @at WHERE public_id = @id');
  const list = rows<[object], ApiKeyRow>(`
    SELECT ${KEY_COLUMNS} FROM api_keys
    WHERE @projectId::TEXT IS NULL OR project_id = @projectId
    ORDER BY created_at, number`);
  return {
    listProjects: ({ at }) => projects.all(at),
    findProject: (project) => find(project, project),
    listApiKeys: (projectId) => list({ projectId }),
    getApiKey,
    *revokeApiKey(wanted) {
      if ((yield* revoke(wanted)) > 0) tx.wake('revocations');
      return yield* getApiKey(wanted.id);
    },
    useApiKey: ({ id, at }) => use({ id, at: at - (at % MINUTE_MS) }),
    // Index api_keys_by_revocation.
    revokedKeys: values('SELECT public_id FROM api_keys WHERE revoked_at >= ?'),
  };
}
