/** All operations of the SQLite engine: one line per noun. */
import { type DeliveryStatements, deliveryOperations } from '../operations/delivery/deliveries.ts';
import { webhookOperations } from '../operations/webhooks.ts';
import { type WorkOps, type WorkStatements, workOperations } from '../operations/work.ts';
import type { DeliveryOps, RedeliveryOps } from '../types/deliveries.ts';
import type { WebhookOps } from '../types/webhooks.ts';
import type { StoreOps } from '../types.ts';
import { contextContentOps, contextOps } from './contexts.ts';
import { synchronous } from './engine/steps.ts';
import type { Tx } from './engine/transaction.ts';
import { blobOps, downloadOps, extensionOps } from './files.ts';
import { metricOps, retentionOps, sessionRetentionOps, workRetentionOps } from './maintenance.ts';
import { operatorOps, projectOps } from './projects.ts';
import { recordingOps } from './recordings.ts';
import { storageOps } from './storage.ts';
import { timeOps } from './times.ts';
import { reportStatements } from './webhooks/attempts.ts';
import { claimStatements } from './webhooks/claims.ts';
import { deliveryViewOps } from './webhooks/delivery-list.ts';
import { eventStatements, listenerOps } from './webhooks/events.ts';
import { redeliveryStatements } from './webhooks/redeliveries.ts';
import { webhookStatements, webhookViews } from './webhooks/webhooks.ts';
import { buildStatements, buildViews } from './work/builds.ts';
import { functionOps } from './work/functions.ts';
import { keyRetention, keyStatements } from './work/idempotency.ts';
import { invocationStatements, invocationViews } from './work/invocations.ts';
import { leaseStatements } from './work/leases.ts';
import { logOps } from './work/logs.ts';
import { queueStatements } from './work/queue.ts';
import { sessionLogOps } from './work/session-logs.ts';
import { sessionLocation, sessionOps, sessionStatements } from './work/sessions.ts';
import { workItemStatements } from './work/work-items.ts';

type WebhookWrites = Omit<WebhookOps, 'getWebhook' | 'listWebhooks'>;

export function allOps(tx: Tx): StoreOps {
  return {
    ...contextOps(tx),
    ...contextContentOps(tx),
    ...synchronous<DeliveryOps & RedeliveryOps>(deliveryOperations(deliveryStatements(tx), tx)),
    ...deliveryViewOps(tx),
    ...listenerOps(tx),
    ...retentionOps(tx),
    ...metricOps(tx),
    ...projectOps(tx),
    ...operatorOps(tx),
    ...sessionOps(tx),
    ...sessionLogOps(tx),
    ...sessionLocation(tx),
    ...sessionRetentionOps(tx),
    ...buildViews(tx),
    ...functionOps(tx),
    ...invocationViews(tx),
    ...keyRetention(tx),
    ...synchronous<WorkOps>(workOperations(workStatements(tx), tx)),
    ...logOps(tx),
    ...blobOps(tx),
    ...storageOps(tx),
    ...timeOps(tx),
    ...downloadOps(tx),
    ...extensionOps(tx),
    ...recordingOps(tx),
    ...webhookViews(tx),
    ...synchronous<WebhookWrites>(webhookOperations(webhookStatements(tx), tx)),
    ...workRetentionOps(tx),
  };
}

function workStatements(tx: Tx): WorkStatements {
  return {
    queue: queueStatements(tx),
    leases: leaseStatements(tx),
    sessions: sessionStatements(tx),
    invocations: invocationStatements(tx),
    builds: buildStatements(tx),
    keys: keyStatements(tx),
    events: eventStatements(tx),
    items: workItemStatements(tx),
  };
}

function deliveryStatements(tx: Tx): DeliveryStatements {
  return {
    claims: claimStatements(tx),
    reports: reportStatements(tx),
    redeliveries: redeliveryStatements(tx),
  };
}
