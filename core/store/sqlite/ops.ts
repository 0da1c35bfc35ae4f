/** All operations of the SQLite engine. */
import { contextOperations } from '../operations/contexts.ts';
import { type DeliveryStatements, deliveryOperations } from '../operations/delivery/deliveries.ts';
import { webhookOperations } from '../operations/delivery/webhooks.ts';
import { fileOperations, recordingOperations } from '../operations/files.ts';
import { removalOperations } from '../operations/functions/removals.ts';
import { logAppends, logOperations } from '../operations/logs.ts';
import { keyOperations, projectOperations } from '../operations/projects.ts';
import { reportOperations } from '../operations/reports.ts';
import { secretOperations } from '../operations/secrets.ts';
import { handoffOperations } from '../operations/sessions/handoffs.ts';
import { type WorkStatements, workOperations } from '../operations/work.ts';
import type { StoreOps } from '../types.ts';
import { certificateOps, certificateStatements } from './certificates.ts';
import { auditOps } from './console/audit.ts';
import { consoleOps } from './console/console.ts';
import { operatorViewOps } from './console/operator.ts';
import { contextOps, contextStatements } from './contexts.ts';
import { synchronous } from './engine/steps.ts';
import type { Tx } from './engine/transaction.ts';
import {
  blobOps,
  blobStatements,
  downloadOps,
  downloadStatements,
  extensionStatements,
  extensionViews,
} from './files.ts';
import { handoffStatements, handoffViews } from './handoffs.ts';
import { keyOps, keyStatements as projectKeyStatements } from './keys.ts';
import { loginOps } from './logins.ts';
import { metricOps, removalStatements, retentionOps, sessionRetentionOps } from './maintenance.ts';
import { operatorOps, projectOps, projectStatements } from './projects.ts';
import { recordingOps, recordingStatements } from './recordings.ts';
import { secretStatements, secretViews } from './secrets.ts';
import { storageOps, storageStatements } from './storage.ts';
import { timeOps } from './times.ts';
import { reportStatements } from './webhooks/attempts.ts';
import { claimStatements } from './webhooks/claims.ts';
import { deliveryViewOps } from './webhooks/delivery-list.ts';
import { eventStatements, listenerOps } from './webhooks/events.ts';
import { redeliveryStatements } from './webhooks/redeliveries.ts';
import { webhookStatements, webhookViews } from './webhooks/webhooks.ts';
import { buildStatements, buildViews } from './work/builds.ts';
import { builtInOps } from './work/built-in.ts';
import { functionOps } from './work/functions.ts';
import { keyRetention, keyStatements } from './work/idempotency.ts';
import { invocationStatements, invocationViews } from './work/invocations.ts';
import { labelOps, labelStatements } from './work/labels.ts';
import { leaseStatements } from './work/leases.ts';
import { logStatements, logViews } from './work/logs.ts';
import { queueStatements } from './work/queue.ts';
import { scheduleStatements, scheduleViews } from './work/schedules.ts';
import { sessionLogOps, sessionLogStatements } from './work/session-logs.ts';
import { sessionOps, sessionStatements } from './work/sessions.ts';
import { workItemStatements } from './work/work-items.ts';

export function allOps(tx: Tx): StoreOps {
  return { ...ruledOps(tx), ...views(tx) };
}

/** Operations with rules, by core/store/operations. */
function ruledOps(tx: Tx) {
  const storage = storageStatements(tx);
  const blobs = blobStatements(tx);
  const files = {
    blobs,
    downloads: downloadStatements(tx),
    extensions: extensionStatements(tx),
    certificates: certificateStatements(tx),
    storage,
    events: eventStatements(tx),
  };
  const handoffs = { handoffs: handoffStatements(tx), events: eventStatements(tx) };
  const logs = { logs: logStatements(tx), sessionLogs: sessionLogStatements(tx) };
  const work = workOperations(workStatements(tx), tx);
  const ofRecordings = recordingOperations({ ...files, recordings: recordingStatements(tx) }, tx);
  return {
    ...synchronous(projectOperations(projectStatements(tx), tx)),
    ...synchronous(keyOperations(projectKeyStatements(tx), tx)),
    ...synchronous(contextOperations({ contexts: contextStatements(tx), storage }, tx)),
    ...synchronous(fileOperations(files, tx)),
    ...synchronous(ofRecordings),
    ...synchronous(handoffOperations(handoffs, tx)),
    ...synchronous(logOperations(logs, tx)),
    ...synchronous(reportOperations({ ...work, ...ofRecordings }, logAppends(logs, tx))),
    ...synchronous(secretOperations(secretStatements(tx), tx)),
    ...synchronous(removalOperations(removalStatements(tx), tx)),
    ...synchronous(work),
    ...synchronous(webhookOperations(webhookStatements(tx), tx)),
    ...synchronous(deliveryOperations(deliveryStatements(tx), tx)),
  };
}

/** Operations of one statement, and the removal of what is old. */
function views(tx: Tx) {
  return {
    ...projectOps(tx),
    ...operatorOps(tx),
    ...loginOps(tx),
    ...auditOps(tx),
    ...keyOps(tx),
    ...operatorViewOps(tx),
    ...sessionOps(tx),
    ...labelOps(tx),
    ...sessionLogOps(tx),
    ...buildViews(tx),
    ...functionOps(tx),
    ...builtInOps(tx),
    ...invocationViews(tx),
    ...scheduleViews(tx),
    ...logViews(tx),
    ...contextOps(tx),
    ...blobOps(tx),
    ...downloadOps(tx),
    ...extensionViews(tx),
    ...certificateOps(tx),
    ...recordingOps(tx),
    ...handoffViews(tx),
    ...secretViews(tx),
    ...storageOps(tx),
    ...webhookViews(tx),
    ...deliveryViewOps(tx),
    ...listenerOps(tx),
    ...timeOps(tx),
    ...metricOps(tx),
    ...keyRetention(tx),
    ...retentionOps(tx),
    ...sessionRetentionOps(tx),
    ...consoleOps(tx),
  };
}

function workStatements(tx: Tx): WorkStatements {
  return {
    queue: queueStatements(tx),
    leases: leaseStatements(tx),
    sessions: sessionStatements(tx),
    labels: labelStatements(tx),
    invocations: invocationStatements(tx),
    builds: buildStatements(tx),
    keys: keyStatements(tx),
    schedules: scheduleStatements(tx),
    events: eventStatements(tx),
    items: workItemStatements(tx),
    handoffs: handoffStatements(tx),
  };
}

function deliveryStatements(tx: Tx): DeliveryStatements {
  return {
    claims: claimStatements(tx),
    reports: reportStatements(tx),
    redeliveries: redeliveryStatements(tx),
  };
}
