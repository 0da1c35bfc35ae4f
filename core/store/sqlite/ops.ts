/** All operations of the SQLite engine: one line per noun. */
import type { StoreOps } from '../types.ts';
import { blobOps } from './blobs.ts';
import { buildOps } from './builds.ts';
import { cancelOps } from './cancel.ts';
import { contextContentOps } from './context-content.ts';
import { contextOps } from './contexts.ts';
import { deliveryOps } from './deliveries.ts';
import { deliveryViewOps } from './delivery-views.ts';
import { downloadOps } from './downloads.ts';
import { extensionOps } from './extensions.ts';
import { figureOps } from './figures.ts';
import { functionOps } from './functions.ts';
import { idempotencyOps } from './idempotency.ts';
import { invocationOps } from './invocations.ts';
import { leaseOps } from './leases.ts';
import { listenerOps } from './listeners.ts';
import { logOps } from './logs.ts';
import { operatorOps } from './operators.ts';
import { projectOps } from './projects.ts';
import { recordingOps } from './recordings.ts';
import { replayOps } from './replays.ts';
import { retentionOps } from './retention.ts';
import { sessionLifeOps } from './session-life.ts';
import { sessionLogOps } from './session-logs.ts';
import { sessionRetentionOps } from './session-retention.ts';
import { sessionOps } from './sessions.ts';
import { storageOps } from './storage.ts';
import { timeOps } from './times.ts';
import type { Tx } from './tx.ts';
import { webhookOps } from './webhooks.ts';
import { workRetentionOps } from './work-retention.ts';

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
