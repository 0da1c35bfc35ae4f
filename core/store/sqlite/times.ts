/**
 * All stored times when core's clock is set, in one transaction. Three ways for a time, and none
 * changes an order within a column:
 *   happened   not later than now
 *   due        what lay in the future moves along; else as happened
 *   begun      moves along always: durations are computed from it
 */
import type { TimeOps } from '../types/times.ts';
import type { Tx } from './engine/transaction.ts';

type Columns = Readonly<Record<string, readonly string[]>>;

export const HAPPENED: Columns = {
  api_keys: ['created_at', 'last_used_at', 'revoked_at'],
  attempts: ['started_at', 'ended_at'],
  blobs: ['created_at'],
  builds: ['created_at', 'updated_at', 'started_at', 'ended_at'],
  contexts: ['created_at', 'updated_at', 'deleted_at', 'saved_at'],
  deliveries: ['created_at', 'done_at'],
  downloads: ['created_at'],
  events: ['created_at'],
  extensions: ['created_at', 'updated_at', 'deleted_at'],
  functions: ['created_at', 'updated_at'],
  invocations: ['created_at', 'updated_at', 'started_at', 'ended_at'],
  jobs: ['created_at', 'released_at'],
  key_pairs: ['created_at'],
  projects: ['created_at', 'updated_at'],
  recordings: ['created_at', 'requested_at', 'completed_at'],
  runners: ['updated_at'],
  session_log_heads: ['at', 'full_at'],
  session_logs: ['at'],
  sessions: ['created_at', 'updated_at', 'started_at', 'ended_at'],
  versions: ['created_at'],
  webhook_secrets: ['created_at'],
  webhooks: ['created_at', 'updated_at', 'disabled_at'],
};
export const DUE: Columns = {
  builds: ['expires_at'],
  deliveries: ['due', 'lease_until'],
  idempotency_keys: ['expires_at'],
  invocations: ['expires_at'],
  jobs: ['lease_until', 'expires_at'],
  listeners: ['until'],
  sessions: ['expires_at'],
  webhook_secrets: ['expires_at'],
  webhooks: ['next_due', 'not_before', 'paced_until'],
};
export const BEGUN: Columns = {
  heartbeat: ['at'],
  webhooks: ['first_failure_at', 'last_attempt_at'],
};
/** Their minutes are counted from `started_at`. */
const OPEN = `ended_at IS NULL AND started_at IS NOT NULL`;

export function timeOps({ db, crashPoint }: Pick<Tx, 'db' | 'crashPoint'>): TimeOps {
  const each = (columns: Columns, sql: (table: string, column: string) => string) =>
    Object.entries(columns).flatMap(([table, names]) =>
      names.map((name) => db.prepare<[object]>(sql(table, name))),
    );
  const along = `@to - @from`;
  const begun = [
    db.prepare<[object]>(`
      UPDATE sessions SET created_at = created_at + ${along}, started_at = started_at + ${along}
      WHERE ${OPEN}`),
    ...each(BEGUN, (table, name) => `UPDATE ${table} SET ${name} = ${name} + ${along}`),
  ];
  const due = each(
    DUE,
    (table, name) => `
      UPDATE ${table} SET ${name} = IIF(${name} > @from, ${name} + ${along}, @to)
      WHERE ${name} > MIN(@from, @to)`,
  );
  const happened = each(
    HAPPENED,
    (table, name) => `UPDATE ${table} SET ${name} = @to WHERE ${name} > @to`,
  );
  return {
    moveTimes(step) {
      for (const statement of [...begun, ...due, ...happened]) statement.run(step);
      crashPoint('move-times');
    },
  };
}
