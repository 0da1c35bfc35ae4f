/**
 * Builds in SQLite: PENDING -> RUNNING -> COMPLETED | FAILED, and PENDING -> FAILED. A COMPLETED
 * build published its functions and versions in the same operation. There is no event for PENDING
 * (proto/spec/webhooks.md 11).
 */
import { must } from '../../../../proto/common/must.ts';
import type {
  BuildOps,
  BuildRow,
  BuiltFunction,
  FunctionRow,
  VersionRow,
} from '../../types/functions.ts';
import type { BuildOutcome, BuiltManifest } from '../../types/leases.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';
import { emitEvent } from '../webhooks/events.ts';
import { queueOf } from './queue.ts';

/** From the lease of a build. Source: proto/spec/functions.md 4. */
export const BUILD_TIMEOUT_MS = 600_000;

const COLUMNS = `id, project_id AS projectId, entrypoint, status, cause, created_at AS createdAt,
  updated_at AS updatedAt, started_at AS startedAt, ended_at AS endedAt, expires_at AS expiresAt`;

export function buildOps(tx: Tx): BuildOps {
  const { db, crashPoint } = tx;
  const queue = queueOf(tx);
  const built = builtBy(tx);
  const insert = db.prepare<[object], BuildRow>(`
    INSERT INTO builds (id, project_id, entrypoint, archive_blob_id, status, created_at, updated_at,
      expires_at)
    VALUES (@id, @projectId, @entrypoint, @archiveBlobId, 'PENDING', @at, @at, @expiresAt)
    RETURNING ${COLUMNS}`);
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
    createBuild(wanted) {
      const { id, projectId, waitUntil, queueMax, traceparent, at } = wanted;
      const place = { expiresAt: waitUntil, queueMax, traceparent, at };
      queue.add({ id, kind: 'build', projectId, ...place });
      const row = must(insert.get(wanted), 'returned row');
      crashPoint('create-build');
      return row;
    },
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

/** What happens to a build inside a larger operation. */
export type BuildMoves = {
  isPending(id: string): boolean;
  /** To RUNNING; gives when its time is over. Undefined when it was not PENDING. */
  start(wanted: { id: string; at: number; expiresAt: number }): number | undefined;
  end(wanted: BuildEnd): void;
};

export type BuildEnd = {
  id: string;
  outcome: BuildOutcome;
  /** The lease whose runner said so; null when core itself ends it. */
  leaseId: string | null;
  at: number;
};

export const buildMoves = preparedOnce((tx: Tx): BuildMoves => {
  const { db, crashPoint } = tx;
  const built = builtBy(tx);
  const publish = publisher(tx);
  const pending = db.prepare<[string]>(`SELECT 1 FROM builds WHERE id = ? AND status = 'PENDING'`);
  const start = db.prepare<[object], BuildRow>(`
    UPDATE builds SET status = 'RUNNING', started_at = @at, updated_at = @at,
      expires_at = @expiresAt
    WHERE id = @id AND status = 'PENDING'
    RETURNING ${COLUMNS}`);
  const end = db.prepare<[object], BuildRow>(`
    UPDATE builds SET status = @status, cause = @cause, bundle_blob_id = @bundleBlobId,
      ended_lease_id = @leaseId, ended_at = @at, updated_at = @at
    WHERE id = @id AND status IN ('PENDING', 'RUNNING')
    RETURNING ${COLUMNS}`);

  return {
    isPending: (id) => pending.get(id) !== undefined,
    start(wanted) {
      const row = start.get(wanted);
      if (row) emit(tx, 'running', row, []);
      return row?.expiresAt;
    },
    end({ id, outcome, leaseId, at }) {
      const ended =
        outcome.kind === 'success'
          ? { status: 'COMPLETED', cause: null, bundleBlobId: outcome.bundleBlobId }
          : { status: 'FAILED', cause: JSON.stringify(outcome.cause), bundleBlobId: null };
      const row = must(end.get({ ...ended, id, leaseId, at }), 'open build of a job');
      if (outcome.kind === 'success') {
        for (const manifest of outcome.manifests) publish(row, manifest, at);
      }
      crashPoint('end-build');
      emit(tx, outcome.kind === 'success' ? 'completed' : 'failed', row, built(id));
    },
  };
});

/** Makes a function's next version; a name that is known keeps its function id. */
function publisher({ db }: Tx): (build: BuildRow, manifest: BuiltManifest, at: number) => void {
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
  return ({ id: buildId, projectId }, manifest, at) => {
    const functionId = must(upsert.get({ ...manifest, projectId, at }), 'returned id');
    insert.run({ ...manifest, functionId, projectId, buildId, at });
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

type Step = 'running' | 'completed' | 'failed';

/** The event tells the build as GET would. */
function emit(tx: Tx, step: Step, row: BuildRow, built: BuiltFunction[]): void {
  const { id, projectId, entrypoint, status, cause } = row;
  const data: Record<string, unknown> = {
    id,
    projectId,
    request: { entrypoint },
    status,
    createdAt: iso(row.createdAt),
    updatedAt: iso(row.updatedAt),
    startedAt: iso(row.startedAt ?? row.createdAt),
    endedAt: row.endedAt === null ? undefined : iso(row.endedAt),
    expiresAt: iso(row.expiresAt),
  };
  if (cause !== null) data['cause'] = JSON.parse(cause);
  if (step === 'completed') {
    data['builtFunctions'] = built.map(({ function: { id, name }, version }) => ({
      id,
      name,
      createdVersion: { id: version.id, functionId: id, functionBuildId: version.buildId },
    }));
  }
  const at = row.updatedAt;
  emitEvent(tx, { type: `functions.builds.${step}`, resourceId: id, projectId, data, at });
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
