/**
 * Rows that an operation locks before its rules begin, where its statements do not: limits that are
 * counted, and rows on whose state a rule decides. The order of all locks is project, queue, job,
 * session or invocation, handoff, webhook, delivery; what a project stores and uses is locked last.
 */
import type { StoreOps } from '../types.ts';
import { statements } from './engine/statements.ts';
import type { Tx } from './engine/transaction.ts';
import { queueLock } from './work/queue.ts';

type Locks = { [Name in keyof StoreOps]?: (...args: Parameters<StoreOps[Name]>) => void };

export type LockRows = (name: string, args: unknown[]) => void;

export function lockedRows(tx: Tx): LockRows {
  const locks: Locks = { ...workLocks(tx), ...webhookLocks(tx), ...projectLocks(tx) };
  const byName = new Map(Object.entries(locks)) as Map<string, (...args: unknown[]) => void>;
  return (name, args) => byName.get(name)?.(...args);
}

/** A limit is counted behind the counters of the project's work. */
function workLocks(tx: Tx): Locks {
  const { write } = statements(tx);
  const lockQueue = queueLock(tx);
  const lockJob = write<[string]>('SELECT 1 FROM jobs WHERE id = ? FOR UPDATE');
  const lockSession = write<[string]>('SELECT 1 FROM sessions WHERE id = ? FOR NO KEY UPDATE');
  // Index jobs_by_lease. Two operations with the same leases lock them in the same order.
  const lockLeases = write<[string[]]>(`
    SELECT 1 FROM jobs WHERE lease_id = ANY (?::TEXT[]) ORDER BY lease_id FOR UPDATE`);
  return {
    startScheduled: (_, { projectId }) => lockQueue('invocation', projectId),
    deleteFunction: ({ projectId }) => lockQueue('invocation', projectId),
    cancelInvocation: ({ id }) => lockJob(id),
    releaseSession: ({ id }) => lockJob(id),
    renewLeases: ({ leaseIds }) => lockLeases(leaseIds),
    putBackWork: ({ leaseIds }) => lockLeases(leaseIds),
    appendLogs: ({ leaseId }) => lockLeases([leaseId]),
    appendSessionLog: ({ leaseId }) => lockLeases([leaseId]),
    reportRunner: ({ leaseIds, chunks, lines, recordings }) => {
      const entries = [...chunks, ...lines, ...recordings];
      lockLeases([...leaseIds, ...entries.map(({ leaseId }) => leaseId)]);
    },
    createHandoff: ({ sessionId }) => lockSession(sessionId),
    setSessionLabels: ({ id }) => lockSession(id),
  };
}

/** Due times are counted behind the rows of their webhooks: webhooks/due.ts. */
function webhookLocks(tx: Tx): Locks {
  const { write } = statements(tx);
  const lockWebhook = write<[string]>('SELECT 1 FROM webhooks WHERE id = ? FOR NO KEY UPDATE');
  const lockWebhooksOf = write<[number[]]>(`
    SELECT 1 FROM webhooks
    WHERE id IN (SELECT webhook_id FROM deliveries WHERE id = ANY (?::BIGINT[]))
    ORDER BY id FOR NO KEY UPDATE`);
  return {
    addSecret: ({ id }) => lockWebhook(id),
    updateWebhook: ({ id }) => lockWebhook(id),
    deleteWebhook: ({ id }) => lockWebhook(id),
    enableWebhook: ({ id }) => lockWebhook(id),
    redeliver: ({ webhookId }) => lockWebhook(webhookId),
    recoverDeliveries: ({ webhookId }) => lockWebhook(webhookId),
    sendTestEvent: ({ webhookId }) => lockWebhook(webhookId),
    reportAttempts: ({ ends }) => lockWebhooksOf(ends.map(({ deliveryId }) => deliveryId)),
  };
}

/** A limit of a project is counted behind its row. Rows that refer to it are inserted meanwhile. */
function projectLocks(tx: Tx): Locks {
  const { write } = statements(tx);
  const lock = write<[string]>('SELECT 1 FROM projects WHERE id = ? FOR NO KEY UPDATE');
  const ofProject = ({ projectId }: { projectId: string }) => lock(projectId);
  return {
    createWebhook: ofProject,
    createLabel: ofProject,
    renameLabel: ofProject,
    createSchedule: ofProject,
    createContext: ofProject,
    createExtension: ofProject,
    createCertificate: ofProject,
    addSecretKeyPair: ofProject,
    createSecret: ofProject,
    updateSecret: ofProject,
    attachSecret: ofProject,
    createProjectKey: ofProject,
    revokeProjectKey: ofProject,
  };
}
