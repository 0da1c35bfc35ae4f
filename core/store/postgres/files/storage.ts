/**
 * What projects store, in PostgreSQL: one row for each project and kind, which triggers of the
 * schema change with each row of a blob or a context. No operation can forget to count.
 */
import type { StorageStatements } from '../../operations/files.ts';
import type { QuotaName, StorageOps, Stored } from '../../types/files.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

export function storageOps(tx: Tx): InReads<StorageOps> {
  const { rows } = statements(tx);
  const stored = rows<[string], Stored>(
    'SELECT kind, count, bytes FROM stored WHERE project_id = ? ORDER BY kind',
  );
  const quotas = rows<[string], { quota: QuotaName; value: number }>(
    'SELECT quota, value FROM quotas WHERE project_id = ?',
  );
  return {
    *projectStorage(projectId) {
      const [ofKinds, ofProject] = [stored(projectId), quotas(projectId)];
      return { stored: yield* ofKinds, quotas: yield* ofProject };
    },
  };
}

export function storageStatements(tx: Tx): StorageStatements {
  return {
    // Locked: what is compared with a quota changes with what is stored next.
    stored: statements(tx).row(`${STORED} FOR NO KEY UPDATE`),
    quota: quotaOf(tx),
  };
}

/**
 * Not locked: runners report for many sessions at once, and would wait for each other. A project
 * may exceed its quota by what is reported at the same time.
 */
export function sharedStorageStatements(tx: Tx): StorageStatements {
  return { stored: statements(tx).row(STORED), quota: quotaOf(tx) };
}

const STORED = 'SELECT count, bytes FROM stored WHERE project_id = ? AND kind = ?';

function quotaOf(tx: Tx): StorageStatements['quota'] {
  return statements(tx).value('SELECT value FROM quotas WHERE project_id = ? AND quota = ?');
}
