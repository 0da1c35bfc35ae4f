/** A project with many rows for the console's lists, over the store without its thread. */
import { newId } from '../../../core/common/ids.ts';
import { sealerOf } from '../../../core/common/sealer.ts';
import { consoleService } from '../../../core/console/console.ts';
import { openReadiness } from '../../../core/maintenance/readiness.ts';
import { type BareStore, bareStore, callerOf } from '../../support/core/bare-store.ts';

/** No time range: over gRPC and in REST the fields are absent. */
export const ANY = { from: undefined, to: undefined };

export const HOUR_MS = 3_600_000;
/** The rows are a second apart; the first is of this time. */
export const FIRST_MS = Date.UTC(2026, 0, 1);

/** What it reads beside the store; keys are not verified here. */
export const SERVICE = {
  signingKeys: { of: (id: string, keyId = '') => `key of ${id} by ${keyId}` },
  disk: { freeBytes: 1 << 30, isLow: false },
  readiness: openReadiness({
    store: { sendToCores() {}, onCoreMessage() {} },
    now: () => FIRST_MS,
    leaseMs: 30_000,
  }),
};

export type Lists = BareStore & {
  console: ReturnType<typeof consoleService>;
  caller: ReturnType<typeof callerOf>;
  addProject(name: string): Promise<string>;
};

/** `await using lists = openLists()` */
export function openLists(): Lists {
  const bare = bareStore();
  const { signal: closing } = new AbortController();
  const now = () => FIRST_MS + 30 * 24 * HOUR_MS;
  const isRevoked = async () => false;
  const sealer = sealerOf(Buffer.alloc(32, 1));
  return {
    ...bare,
    console: consoleService({
      ...SERVICE,
      store: bare.store,
      sealer,
      isRevoked,
      now,
      wall: now,
      closing,
    }),
    caller: callerOf(bare.projectId),
    async addProject(name) {
      const times = { createdAt: FIRST_MS, updatedAt: FIRST_MS };
      const row = { id: newId(), name, defaultTimeout: 900, concurrency: 25 };
      return (await bare.store.ensureProject({ ...row, ...times })).id;
    },
  };
}

/** An id whose order is that of its number. */
export const idOf = (prefix: string, n: number): string =>
  `${prefix}-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;

/** In SQL: the same id, of the column n. */
const ID = (prefix: string): string => `'${prefix}-0000-7000-8000-' || printf('%012x', n)`;
const NUMBERS = 'WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers';

export const SESSION = '01900000';
export const INVOCATION = '01910000';
export const BUILD = '01920000';

/** Every 100th is ERROR, every 1000th of a context, the rest COMPLETED. */
export function addSessions({ db }: BareStore, projectId: string, count: number): void {
  db.exec(`${NUMBERS} WHERE n < ${count - 1})
    INSERT INTO sessions (id, project_id, status, region, context_id, user_metadata, params,
      created_at, updated_at, started_at, ended_at, expires_at)
    SELECT ${ID(SESSION)}, '${projectId}', IIF(n % 100 = 7, 'ERROR', 'COMPLETED'), 'us-west-2',
      IIF(n % 1000 = 5, '${idOf('01930000', 1)}', NULL), '{"order":"' || n || '"}', '{}',
      ${FIRST_MS} + n * 1000, 0, ${FIRST_MS}, ${FIRST_MS} + n * 1000, ${FIRST_MS} FROM numbers`);
}

export type Published = { functionId: string; versionId: string };

/** A build that published functions of these names, in their order. */
export function addFunctions({ db }: BareStore, projectId: string, names: string[]): Published[] {
  const [blobId, buildId] = [newId(), newId()];
  db.exec(`
    INSERT INTO blobs (id, project_id, kind, size, sha256, created_at)
    VALUES ('${blobId}', '${projectId}', 'BUILD_ARCHIVE', 1, 'aa', 0);
    INSERT INTO builds (id, project_id, entrypoint, archive_blob_id, status, created_at,
      updated_at, expires_at)
    VALUES ('${buildId}', '${projectId}', 'a.ts', '${blobId}', 'COMPLETED', ${FIRST_MS}, 0, 0)`);
  return names.map((name) => {
    const [functionId, versionId] = [newId(), newId()];
    db.exec(`
      INSERT INTO functions (id, project_id, name, created_at, updated_at)
      VALUES ('${functionId}', '${projectId}', '${name}', 0, 0);
      INSERT INTO versions (id, project_id, function_id, build_id, created_at)
      VALUES ('${versionId}', '${projectId}', '${functionId}', '${buildId}', 0)`);
    return { functionId, versionId };
  });
}

/** One for each session of addSessions; every 100th is FAILED. */
export function addInvocations(
  { db }: BareStore,
  projectId: string,
  { of, from, count }: { of: Published; from: number; count: number },
): void {
  db.exec(`${NUMBERS} WHERE n < ${from + count - 1})
    INSERT INTO invocations (id, project_id, function_id, version_id, session_id, region, status,
      params, results, cause, timeout_ms, created_at, updated_at, started_at, expires_at)
    SELECT ${ID(INVOCATION)}, '${projectId}', '${of.functionId}', '${of.versionId}', ${ID(SESSION)},
      'us-west-2', IIF(n % 100 = 7, 'FAILED', 'COMPLETED'), '{}', IIF(n % 100 = 7, NULL, '1'),
      IIF(n % 100 = 7, '{"code":"WORKLOAD_ERROR","message":"no ' || n || '"}', NULL), 1000,
      ${FIRST_MS} + n * 1000, 0, ${FIRST_MS}, ${FIRST_MS} FROM numbers WHERE n >= ${from}`);
}
