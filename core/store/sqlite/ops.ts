/** All operations of the SQLite engine: one line per noun. */
import type { StoreOps } from '../types.ts';
import { contextContentOps, contextOps } from './contexts.ts';
import type { Tx } from './engine/transaction.ts';
import { blobOps, downloadOps, extensionOps } from './files.ts';
import { figureOps, retentionOps, sessionRetentionOps, workRetentionOps } from './maintenance.ts';
import { operatorOps, projectOps } from './projects.ts';
import { recordingOps } from './recordings.ts';
import { storageOps } from './storage.ts';
import { timeOps } from './times.ts';
import { deliveryOps } from './webhooks/claims.ts';
import { deliveryViewOps } from './webhooks/delivery-list.ts';
import { listenerOps } from './webhooks/events.ts';
import { replayOps } from './webhooks/redeliveries.ts';
import { webhookOps } from './webhooks/webhooks.ts';
import { buildOps } from './work/builds.ts';
import { cancelOps } from './work/cancel.ts';
import { functionOps } from './work/functions.ts';
import { idempotencyOps } from './work/idempotency.ts';
import { invocationOps } from './work/invocations.ts';
import { leaseOps } from './work/leases.ts';
import { logOps } from './work/logs.ts';
import { sessionLifeOps } from './work/session-lifecycle.ts';
import { sessionLogOps } from './work/session-logs.ts';
import { sessionOps } from './work/sessions.ts';

export function allOps(tx: Tx): StoreOps {
  return {
    ...contextOps(tx),
    ...contextContentOps(tx),
    ...deliveryOps(tx),
    ...deliveryViewOps(tx),
    ...replayOps(tx),
    ...listenerOps(tx),
    ...retentionOps(tx),
    ...figureOps(tx),
    ...projectOps(tx),
    ...operatorOps(tx),
    ...sessionOps(tx),
    ...sessionLogOps(tx),
    ...sessionLifeOps(tx),
    ...sessionRetentionOps(tx),
    ...buildOps(tx),
    ...functionOps(tx),
    ...invocationOps(tx),
    ...cancelOps(tx),
    ...idempotencyOps(tx),
    ...leaseOps(tx),
    ...logOps(tx),
    ...blobOps(tx),
    ...storageOps(tx),
    ...timeOps(tx),
    ...downloadOps(tx),
    ...extensionOps(tx),
    ...recordingOps(tx),
    ...webhookOps(tx),
    ...workRetentionOps(tx),
  };
}
