/**
 * Moves all stored times in one transaction when core's clock is set. There are four kinds of
 * times; the order within a column never changes:
 *   happened   not later than now: a step forward does not change it
 *   due        a future time moves by the step; a past one is as happened
 *   begun      always moves by the step: durations are computed from it
 *   planned    a time of the calendar, which no step moves: after a step back it is computed again
 * Other operations wait meanwhile, so columns behind a result or another long text are read in open
 * and young rows only.
 */
import { idAt } from '../../common/ids.ts';
import type { TimeOps } from '../types/maintenance.ts';
import type { Tx } from './engine/transaction.ts';

type Columns = Readonly<Record<string, readonly string[]>>;

export const HAPPENED: Columns = {
  api_keys: ['created_at', 'last_used_at', 'revoked_at'],
  attempts: ['started_at', 'ended_at'],
  audit_events: ['created_at'],
  blobs: ['created_at'],
  builds: ['created_at', 'updated_at', 'started_at', 'ended_at'],
  certificates: ['created_at', 'updated_at', 'deleted_at'],
  console_logins: ['created_at'],
  contexts: ['created_at', 'updated_at', 'deleted_at', 'saved_at'],
  deliveries: ['created_at', 'done_at'],
  downloads: ['created_at'],
  events: ['created_at'],
  extensions: ['created_at', 'updated_at', 'deleted_at'],
  functions: ['created_at', 'updated_at', 'deleted_at'],
  handoffs: ['created_at', 'ended_at'],
  invocations: ['created_at', 'updated_at', 'started_at', 'ended_at'],
  jobs: ['created_at', 'released_at'],
  key_pairs: ['created_at'],
  labels: ['created_at', 'updated_at'],
  projects: ['created_at', 'updated_at'],
  recordings: ['created_at', 'requested_at', 'completed_at'],
  runners: ['updated_at', 'drained_at'],
  schedules: ['created_at', 'updated_at', 'last_run_at'],
  secret_key_pairs: ['created_at'],
  secrets: ['created_at', 'updated_at'],
  session_log_heads: ['at', 'full_at'],
  session_logs: ['at'],
  sessions: ['created_at', 'updated_at', 'started_at', 'ended_at'],
  versions: ['created_at'],
  webhook_secrets: ['created_at'],
  webhooks: ['created_at', 'updated_at', 'disabled_at'],
};
export const DUE: Columns = {
  builds: ['expires_at'],
  console_logins: ['expires_at'],
  deliveries: ['due', 'lease_until'],
  handoffs: ['expires_at'],
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
export const PLANNED: Columns = { schedules: ['next_run_at'] };
/** Short-lived: a row whose id is older than a day has no time later than now. */
const SHORT = ['blobs', 'builds', 'downloads', 'events', 'invocations', 'sessions', 'versions'];
/** Open work has a row in `jobs`; an invocation's session is open as long as the invocation. */
const OPEN: Readonly<Record<string, string>> = {
  builds: 'id IN (SELECT id FROM jobs)',
  invocations: 'id IN (SELECT id FROM jobs)',
  sessions: `status IN ('PENDING', 'RUNNING')`,
};
const DAY_MS = 86_400_000;
/** As core/files/orphan-sweep.ts: until then a blob may get an owner. */
const UNNAMED_MS = 3_600_000;
/** As core/sessions/recordings/recordings.ts: until then a session's recordings may arrive. */
const LATE_MS = 600_000;

/** Whether the id agrees that its row is old: parameters of `oldIds`. */
export const hasOldId = (id: string): string => `(${id} < @beforeId OR ${id} > @aheadId)`;

export function timeOps({ db, crashPoint }: Pick<Tx, 'db' | 'crashPoint'>): TimeOps {
  const always = [...begun(), ...due()].map((sql) => db.prepare<[object]>(sql));
  const back = [...happened(), REPLAN].map((sql) => db.prepare<[object]>(sql));
  return {
    moveTimes({ from, to }) {
      const youngId = idAt(Math.min(from, to) - DAY_MS);
      const step = { from, to, youngId };
      for (const statement of always) statement.run(step);
      if (to < from) for (const statement of back) statement.run(step);
      crashPoint('move-times');
    },
  };
}

/** Core computes the next time from now on: core/functions/schedules/run-due.ts. */
const REPLAN = `
  UPDATE schedules SET next_run_at = @to, is_planned = 0 WHERE next_run_at IS NOT NULL`;

const along = (name: string): string => `${name} = ${name} + @to - @from`;

function begun(): string[] {
  const shown = ['created_at', 'started_at'].map(along).join(', ');
  const whole = ['created_at', 'updated_at', 'started_at', 'ended_at'].map(along).join(', ');
  return [
    `UPDATE sessions SET ${shown} WHERE ${OPEN['sessions']} AND started_at IS NOT NULL`,
    ...['builds', 'invocations'].map(
      (table) => `UPDATE ${table} SET ${shown} WHERE ${OPEN[table]} AND started_at IS NOT NULL`,
    ),
    `UPDATE sessions SET ${whole} WHERE id > @youngId AND ended_at > @from - ${LATE_MS}`,
    `UPDATE blobs SET ${along('created_at')}
     WHERE id > @youngId AND created_at > @from - ${UNNAMED_MS}`,
    ...Object.entries(BEGUN).map(
      ([table, names]) => `UPDATE ${table} SET ${names.map(along).join(', ')}`,
    ),
  ];
}

function due(): string[] {
  return Object.entries(DUE).flatMap(([table, names]) =>
    names.map(
      (name) => `
        UPDATE ${table} SET ${name} = IIF(${name} > @from, ${name} + @to - @from, @to)
        WHERE ${OPEN[table] ?? 'TRUE'} AND ${name} > MIN(@from, @to)`,
    ),
  );
}

/** Ids of attempts are numbers in the order of their starts; an attempt lasts seconds. */
const YOUNG_ATTEMPTS = `id > COALESCE((
  SELECT id FROM attempts WHERE started_at < @to - ${DAY_MS} ORDER BY id DESC LIMIT 1), 0)`;

function youngOf(table: string): string {
  if (table === 'attempts') return YOUNG_ATTEMPTS;
  return SHORT.includes(table) ? 'id > @youngId' : 'TRUE';
}

/** NULL stays NULL. */
function happened(): string[] {
  return Object.entries(HAPPENED).map(([table, names]) => {
    const set = names.map((name) => `${name} = MIN(${name}, @to)`).join(', ');
    const where = names.map((name) => `${name} > @to`).join(' OR ');
    return `UPDATE ${table} SET ${set} WHERE ${youngOf(table)} AND (${where})`;
  });
}
