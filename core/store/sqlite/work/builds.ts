/** Builds in SQLite. Their transitions: core/store/operations/builds.ts. */
import { must } from '../../../../proto/common/must.ts';
import type { BuildStatements } from '../../operations/builds.ts';
import { BUILD, openStates, statesBefore } from '../../operations/states.ts';
import type {
  BuildOps,
  BuildRow,
  BuiltFunction,
  FunctionRow,
  VersionRow,
} from '../../types/functions.ts';
import { found } from '../engine/steps.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';
import { inStates } from './states.ts';

const COLUMNS = `id, project_id AS projectId, entrypoint, status, cause, created_at AS createdAt,
  updated_at AS updatedAt, started_at AS startedAt, ended_at AS endedAt, expires_at AS expiresAt`;

export const buildStatements = preparedOnce((tx: Tx): BuildStatements => {
  const { db } = tx;
  const built = builtBy(tx);
  const insert = db.prepare<[object], BuildRow>(`
    INSERT INTO builds (id, project_id, entrypoint, archive_blob_id, status, created_at, updated_at,
      expires_at)
    VALUES (@id, @projectId, @entrypoint, @archiveBlobId, 'PENDING', @at, @at, @expiresAt)
    RETURNING ${COLUMNS}`);
  const isPending = db.prepare<[string]>(
    `SELECT 1 FROM builds WHERE id = ? AND status = 'PENDING'`,
  );
  const start = db.prepare<[object], BuildRow>(`
    UPDATE builds SET status = 'RUNNING', started_at = @at, updated_at = @at,
      expires_at = @expiresAt
    WHERE id = @id AND status ${inStates(statesBefore(BUILD, 'RUNNING'))}
    RETURNING ${COLUMNS}`);
  const end = db.prepare<[object], BuildRow>(`
    UPDATE builds SET status = @status, cause = @cause, bundle_blob_id = @bundleBlobId,
      ended_lease_id = @leaseId, ended_at = @at, updated_at = @at
    WHERE id = @id AND status ${inStates(openStates(BUILD))}
    RETURNING ${COLUMNS}`);
  const ended = db.prepare<[string]>('SELECT 1 FROM builds WHERE ended_lease_id = ?');

  return {
    ...publishStatements(tx),
    insert: (build) => found(must(insert.get(build), 'returned row')),
    isPending: (id) => found(isPending.get(id) !== undefined),
    start: (wanted) => found(start.get(wanted)),
    end: (wanted) => found(end.get(wanted)),
    endedBy: (leaseId) => found(ended.get(leaseId) !== undefined),
    built: (buildId) => found(built(buildId)),
  };
});

function publishStatements({ db }: Tx): Pick<BuildStatements, 'upsertFunction' | 'insertVersion'> {
  const upsert = db
    .prepare<[object], string>(`
      INSERT INTO functions (id, project_id, name, created_at, updated_at)
      VALUES (@functionId, @projectId, @name, @at, @at)
      ON CONFLICT (project_id, name) DO UPDATE SET updated_at = excluded.updated_at
      RETURNING id`)
    .pluck();
  const insert = db.prepare<[object]>(`
    INSERT INTO versions (id, project_id, function_id, build_id, session_config, params_schema,
      created_at)
    VALUES (@versionId, @projectId, @functionId, @buildId, @sessionConfig, @paramsSchema, @at)`);
  return {
    upsertFunction: (wanted) => found(must(upsert.get(wanted), 'returned id')),
    insertVersion: (version) => void insert.run(version),
  };
}

export function buildViews(tx: Tx): Omit<BuildOps, 'createBuild'> {
  const { db } = tx;
  const built = builtBy(tx);
  const byId = db.prepare<[object], BuildRow>(`
    SELECT ${COLUMNS} FROM builds WHERE id = @id AND project_id = @projectId`);
  const matching = 'project_id = @projectId AND (@status IS NULL OR status = @status)';
  const page = db.prepare<[object], BuildRow>(`
    SELECT ${COLUMNS} FROM builds WHERE ${matching}
    ORDER BY id DESC LIMIT @limit OFFSET @offset`); // index builds_by_project
  const total = db
    .prepare<[object], number>(`SELECT COUNT(*) FROM builds WHERE ${matching}`)
    .pluck();
  return {
    getBuild(wanted) {
      const build = byId.get(wanted);
      return build && { build, functions: built(build.id) };
    },
    listBuilds(wanted) {
      const filter = { ...wanted, status: wanted.status ?? null };
      const rows = page.all(filter).map((build) => ({ build, functions: built(build.id) }));
      return { rows, total: total.get(filter) ?? 0 };
    },
  };
}

type Joined = Omit<VersionRow, 'projectId'> &
  Pick<FunctionRow, 'projectId' | 'name'> & {
    functionCreatedAt: number;
    functionUpdatedAt: number;
  };

const builtBy = preparedOnce(({ db }: Tx): ((buildId: string) => BuiltFunction[]) => {
  const joined = db.prepare<[string], Joined>(`
    SELECT versions.id AS id, versions.function_id AS functionId, versions.build_id AS buildId,
      versions.session_config AS sessionConfig, versions.params_schema AS paramsSchema,
      versions.created_at AS createdAt, functions.project_id AS projectId, functions.name AS name,
      functions.created_at AS functionCreatedAt, functions.updated_at AS functionUpdatedAt
    FROM versions JOIN functions ON functions.id = versions.function_id
    WHERE versions.build_id = ? ORDER BY functions.name`); // index versions_by_build
  return (buildId) =>
    joined.all(buildId).map(({ name, functionCreatedAt, functionUpdatedAt, ...version }) => ({
      function: {
        id: version.functionId,
        projectId: version.projectId,
        name,
        createdAt: functionCreatedAt,
        updatedAt: functionUpdatedAt,
      },
      version,
    }));
});
