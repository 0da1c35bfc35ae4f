/** The operations of projects, keys, files, contexts, the console and maintenance. */
import { contextOperations } from '../operations/contexts.ts';
import { fileOperations } from '../operations/files.ts';
import { removalOperations } from '../operations/functions/removals.ts';
import { keyOperations, projectOperations } from '../operations/projects.ts';
import { secretOperations } from '../operations/secrets.ts';
import { handoffOperations } from '../operations/sessions/handoffs.ts';
import { auditOps } from './console/audit.ts';
import type { Watches } from './console/changes.ts';
import { consoleOps } from './console/console.ts';
import { operatorViewOps } from './console/operator.ts';
import { asynchronous, withoutTransaction } from './engine/steps.ts';
import type { Tx } from './engine/transaction.ts';
import { certificateOps, certificateStatements } from './files/certificates.ts';
import { contextOps, contextStatements } from './files/contexts.ts';
import {
  blobOps,
  blobStatements,
  downloadOps,
  downloadStatements,
  extensionStatements,
  extensionViews,
} from './files/files.ts';
import { recordingOps } from './files/recordings.ts';
import { storageOps, storageStatements } from './files/storage.ts';
import { handoffStatements, handoffViews } from './handoffs.ts';
import { type EndCounts, metricOps } from './maintenance/metrics.ts';
import { retentionOps } from './maintenance/retention.ts';
import { removalStatements, sessionRetentionOps } from './maintenance/work-retention.ts';
import { keyOps, keyStatements } from './projects/keys.ts';
import { loginOps } from './projects/logins.ts';
import { operatorOps, projectOps, projectStatements } from './projects/projects.ts';
import { secretStatements, secretViews } from './projects/secrets.ts';
import { eventStatements } from './webhooks/events.ts';

/** What an open store keeps in memory. */
export type Kept = { ends: EndCounts; watches: Watches };

export function otherOps(tx: Tx, kept: Kept) {
  return { ...ruledOps(tx), ...views(tx, kept), ...changes(tx) };
}

/** Operations with rules, by core/store/operations. */
function ruledOps(tx: Tx) {
  const storage = storageStatements(tx);
  const files = {
    blobs: blobStatements(tx),
    downloads: downloadStatements(tx),
    extensions: extensionStatements(tx),
    certificates: certificateStatements(tx),
    storage,
    events: eventStatements(tx),
  };
  const handoffs = { handoffs: handoffStatements(tx), events: eventStatements(tx) };
  return asynchronous({
    ...projectOperations(projectStatements(tx), tx),
    ...keyOperations(keyStatements(tx), tx),
    ...contextOperations({ contexts: contextStatements(tx), storage }, tx),
    ...fileOperations(files, tx),
    ...handoffOperations(handoffs, tx),
    ...secretOperations(secretStatements(tx), tx),
  });
}

/** One statement, or reads only. */
function views(tx: Tx, { ends, watches }: Kept) {
  return withoutTransaction({
    ...projectOps(tx),
    ...operatorOps(tx),
    ...loginOps(tx),
    ...auditOps(tx),
    ...keyOps(tx),
    ...operatorViewOps(tx),
    ...contextOps(tx),
    ...blobOps(tx),
    ...downloadOps(tx),
    ...extensionViews(tx),
    ...certificateOps(tx),
    ...recordingOps(tx),
    ...handoffViews(tx),
    ...secretViews(tx),
    ...storageOps(tx),
    ...metricOps(tx, ends),
    ...consoleOps(tx, watches),
  });
}

/** Several writes without rules. */
function changes(tx: Tx) {
  const { deleteDownload, deleteSessionDownloads, purgeDownloads } = downloadOps(tx);
  const { addConsoleLogin } = loginOps(tx);
  const { purgeRecordings } = recordingOps(tx);
  return asynchronous({
    ...retentionOps(tx),
    ...removalOperations(removalStatements(tx), tx),
    ...sessionRetentionOps(tx),
    deleteDownload,
    deleteSessionDownloads,
    purgeDownloads,
    addConsoleLogin,
    purgeRecordings,
  });
}
