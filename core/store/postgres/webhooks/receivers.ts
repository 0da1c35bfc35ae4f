/**
 * Who receives the events of a project, read together with the row that an operation locks first:
 * its transitions have events of several types, and need no statement for the receivers of each.
 */
import type { Tx } from '../engine/transaction.ts';

export type Webhook = { id: string; status: 'enabled' | 'disabled' };

export type Receivers = {
  /** JSON of its webhooks, each `[id, status, types]`; null for none. */
  webhooks: string | null;
  /** Until when a client polls its events. */
  heardUntil: number | null;
};

type Found = Receivers & { projectId: string };

/** Columns for the project of the row. Index webhooks_by_project; a project has at most 100. */
export const receivers = (projectId: string) => `
  (SELECT json_agg(json_build_array(webhooks.id, webhooks.status, webhooks.event_types::JSON))
    FROM webhooks
    WHERE webhooks.project_id = ${projectId} AND webhooks.status <> 'deleted')::TEXT AS webhooks,
  (SELECT until FROM listeners WHERE listeners.project_id = ${projectId}) AS "heardUntil"`;

const KNOWN = {};

/** By the project's id: those that the running operation has read. */
export function receiversOf(tx: Tx): Map<string, Receivers> {
  return tx.memory(KNOWN, () => new Map<string, Receivers>());
}

/** Remembers the receivers of the row's project. */
export function withReceivers<Row>(tx: Tx): (row: Row & Found) => Row {
  return ({ webhooks, heardUntil, ...row }) => {
    receiversOf(tx).set(row.projectId, { webhooks, heardUntil });
    return row as unknown as Row; // without the two columns
  };
}

export function subscribedIn({ webhooks }: Receivers, type: string): Webhook[] {
  if (webhooks === null) return [];
  const all = JSON.parse(webhooks) as [string, Webhook['status'], string[]][];
  return all.flatMap(([id, status, types]) => (types.includes(type) ? { id, status } : []));
}
