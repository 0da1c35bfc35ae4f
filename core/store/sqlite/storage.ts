/**
 * What projects store, in SQLite: one row for each project and kind, which triggers of the schema
 * change with each row of a blob or a context. No operation can forget to count.
 */
import type { StorageStatements } from '../operations/files.ts';
import type { QuotaName, StorageOps, Stored } from '../types/files.ts';
import { queries, statements } from './engine/statements.ts';
import { preparedOnce, type Tx } from './engine/transaction.ts';

export function storageOps(tx: Tx): StorageOps {
  const { rows } = queries(tx);
  const stored = rows<[string], Stored>(
    'SELECT kind, count, bytes FROM stored WHERE project_id = ?',
  );
  const quotas = rows<[string], { quota: QuotaName; value: number }>(
    'SELECT quota, value FROM quotas WHERE project_id = ?',
  );
  return {
    projectStorage: (projectId) => ({ stored: stored(projectId), quotas: quotas(projectId) }),
  };
}

export const storageStatements = preparedOnce(
  (tx: Tx): StorageStatements => ({
    stored: statements(tx).row('SELECT count, bytes FROM stored WHERE project_id = ? AND kind = ?'),
    quota: statements(tx).value('SELECT value FROM quotas WHERE project_id = ? AND quota = ?'),
  }),
);
