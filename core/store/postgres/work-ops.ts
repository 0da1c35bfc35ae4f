/** The operations of work, of what runners report of it, of webhooks and deliveries. */
import { type DeliveryStatements, deliveryOperations } from '../operations/delivery/deliveries.ts';
import { webhookOperations } from '../operations/delivery/webhooks.ts';
import { recordingOperations } from '../operations/files.ts';
import { logAppends, logOperations } from '../operations/logs.ts';
import { reportOperations } from '../operations/reports.ts';
import { type WorkStatements, workOperations } from '../operations/work.ts';
import { asynchronous, withoutTransaction } from './engine/steps.ts';
import type { Tx } from './engine/transaction.ts';
import { blobStatements } from './files/files.ts';
import { recordingStatements } from './files/recordings.ts';
import { sharedStorageStatements } from './files/storage.ts';
import { handoffStatements } from './handoffs.ts';
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
import { leaseJobStatements } from './work/lease-jobs.ts';
import { leaseStatements } from './work/leases.ts';
import { logStatements, logViews } from './work/logs.ts';
import { queueStatements } from './work/queue.ts';
import { scheduleStatements, scheduleViews } from './work/schedules.ts';
import { sessionLogOps, sessionLogStatements } from './work/session-logs.ts';
import { sessionOps, sessionStatements } from './work/sessions.ts';
import { workItemStatements } from './work/work-items.ts';

export function workOps(tx: Tx) {
  const logs = { logs: logStatements(tx), sessionLogs: sessionLogStatements(tx) };
  const work = workOperations(workStatements(tx), tx);
  const ofRecordings = recordingOperations(
    {
      recordings: recordingStatements(tx),
      blobs: blobStatements(tx),
      events: eventStatements(tx),
      storage: sharedStorageStatements(tx),
    },
    tx,
  );
  return {
    ...asynchronous(logOperations(logs, tx)),
    ...asynchronous(ofRecordings),
    ...asynchronous(work),
    ...asynchronous(reportOperations({ ...work, ...ofRecordings }, logAppends(logs, tx))),
    ...asynchronous(webhookOperations(webhookStatements(tx), tx)),
    ...asynchronous(deliveryOperations(deliveryStatements(tx), tx)),
    ...asynchronous(builtInOps(tx)),
    ...asynchronous(listenerOps(tx)),
    ...withoutTransaction({
      ...sessionOps(tx),
      ...sessionLogOps(tx),
      ...labelOps(tx),
      ...logViews(tx),
      ...buildViews(tx),
      ...functionOps(tx),
      ...invocationViews(tx),
      ...scheduleViews(tx),
      ...keyRetention(tx),
      ...webhookViews(tx),
      ...deliveryViewOps(tx),
    }),
  };
}

function workStatements(tx: Tx): WorkStatements {
  return {
    queue: { ...queueStatements(tx), ...leaseJobStatements(tx) },
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
