/**
 * What projects store, in SQLite: one row for each project and kind, which triggers of the schema
 * change with each row of a blob or a context. No operation can forget to count.
 */
import type { QuotaName, StorageOps, Stored, StoredKind, Within } from '../types/files.ts';
import { preparedOnce, type Tx } from './engine/transaction.ts';

export function storageOps({ db }: Pick<Tx, 'db'>): StorageOps {
  const stored = db.prepare<[string], Stored>(`
    SELECT kind, count, bytes FROM stored WHERE project_id = ?`);
  const quotas = db.prepare<[string], { quota: QuotaName; value: number }>(`
    SELECT quota, value FROM quotas WHERE project_id = ?`);
  return {
    projectStorage: (projectId) => ({
      stored: stored.all(projectId),
      quotas: quotas.all(projectId),
    }),
  };
}

/** Sums for the operations that add to them. */
export const storedSums = preparedOnce(({ db }: Tx) => {
  const one = db.prepare<[string, StoredKind], Omit<Stored, 'kind'>>(`
    SELECT count, bytes FROM stored WHERE project_id = ? AND kind = ?`);
  return {
    countOf: (projectId: string, kind: StoredKind): number => one.get(projectId, kind)?.count ?? 0,
    /** Whether so many bytes more stay within. */
    hasRoom(projectId: string, bytes: number, { kinds, maxBytes }: Within): boolean {
      const sum = kinds.reduce((all, kind) => all + (one.get(projectId, kind)?.bytes ?? 0), 0);
      return sum + bytes <= maxBytes;
    },
  };
});
