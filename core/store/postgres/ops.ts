/** All operations of the PostgreSQL engine. */
import type { StoreOps } from '../types.ts';
import type { Operation, Tx } from './engine/transaction.ts';
import { type Kept, otherOps } from './other-ops.ts';
import { workOps } from './work-ops.ts';

/** The names are those of the seam; each is run by engine/transaction.ts. */
export type AllOps = {
  [Name in Exclude<keyof StoreOps, 'moveTimes'>]: Operation<
    Parameters<StoreOps[Name]>,
    ReturnType<StoreOps[Name]>
  >;
};

export function allOps(tx: Tx, kept: Kept): AllOps {
  return { ...workOps(tx), ...otherOps(tx, kept) };
}
