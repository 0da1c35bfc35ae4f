/** All operations of the SQLite engine: one line per noun. */
import type { StoreOps } from '../types.ts';
import { contextOps } from './contexts.ts';
import { deliveryOps } from './deliveries.ts';
import { projectOps } from './projects.ts';
import type { Tx } from './tx.ts';
import { webhookOps } from './webhooks.ts';

export function allOps(tx: Tx): StoreOps {
  return {
    ...contextOps(tx),
    ...deliveryOps(tx),
    ...projectOps(tx),
    ...webhookOps(tx),
  };
}
