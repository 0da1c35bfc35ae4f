/** All operations of the SQLite engine: one line per noun. */
import type { StoreOps } from '../types.ts';
import { projectOps } from './projects.ts';
import type { Tx } from './tx.ts';

export function allOps(tx: Tx): StoreOps {
  return {
    ...projectOps(tx),
  };
}
