/**
 * The service's own function in PostgreSQL. Its project has no queue and no key: it is in no list,
 * and only the invocations of other projects name it.
 */
import { BUILT_IN } from '../../../common/built-in.ts';
import type { BuiltInOps } from '../../types/built-in.ts';
import type { InvocationRow } from '../../types/invocations.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { INVOCATION_COLUMNS } from './invocations.ts';

export function builtInOps(tx: Tx): InReads<BuiltInOps> {
  const { value, row, write } = statements(tx);
  const newest = value<[object], string>(`
    SELECT versions.id FROM versions
    JOIN builds ON builds.id = versions.build_id
    JOIN blobs ON blobs.id = builds.bundle_blob_id
    WHERE versions.id = (SELECT MAX(id) FROM versions WHERE function_id = @functionId)
      AND blobs.sha256 = @sha256`);
  const rows = [
    `INSERT INTO projects (id, name, default_timeout, concurrency, created_at, updated_at)
      VALUES (@projectId, @projectName, 0, 0, @at, @at) ON CONFLICT DO NOTHING`,
    `INSERT INTO blobs (id, project_id, kind, size, sha256, created_at)
      VALUES (@blobId, @projectId, 'BUNDLE', @size, @sha256, @at)`,
    `INSERT INTO builds (id, project_id, entrypoint, archive_blob_id, bundle_blob_id, status,
        created_at, updated_at, started_at, ended_at, expires_at)
      VALUES (@buildId, @projectId, '', @blobId, @blobId, 'COMPLETED', @at, @at, @at, @at, @at)`,
    `INSERT INTO functions (id, project_id, name, created_at, updated_at)
      VALUES (@functionId, @projectId, @functionName, @at, @at) ON CONFLICT DO NOTHING`,
    `INSERT INTO versions (id, project_id, function_id, build_id, created_at)
      VALUES (@versionId, @projectId, @functionId, @buildId, @at)`,
  ].map((sql) => write<[object]>(sql));
  const ended = row<[object], InvocationRow>(`
    SELECT ${INVOCATION_COLUMNS} FROM invocations
    WHERE id = @id AND project_id = @projectId AND ended_at IS NOT NULL FOR UPDATE`);
  const clear = write<[object]>(`
    UPDATE invocations SET results = NULL
    WHERE id = @id AND project_id = @projectId AND ended_at IS NOT NULL`);
  return {
    builtInVersion: (sha256) => newest({ functionId: BUILT_IN.functionId, sha256 }),
    // biome-ignore lint/correctness/useYield: it only writes
    *publishBuiltIn(made) {
      for (const insert of rows) insert({ ...BUILT_IN, ...made });
    },
    *takeOneShot(wanted) {
      const found = yield* ended(wanted);
      clear(wanted);
      return found;
    },
  };
}
