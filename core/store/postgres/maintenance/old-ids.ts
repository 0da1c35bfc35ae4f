/**
 * In SQL: whether the id agrees that its row is old; parameters of `oldIds` (core/common/ids.ts).
 */
export const hasOldId = (id: string): string => `(${id} < @beforeId OR ${id} > @aheadId)`;
