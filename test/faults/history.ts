/**
 * Checks the database file of a stopped service: every acknowledged invocation exists and ended
 * once, with its session, its event and its deliveries. Reads only, and returns one line for each
 * error.
 */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { DELAYS_MS, JITTER_MAX, JITTER_MIN } from '../../core/delivery/retry-schedule.ts';

type Row = {
  id: string;
  status: string;
  session: string | null;
  ended_at: number | null;
  cause: string | null;
};
type EventRow = { id: string; type: string };

/** Session statuses that fit the end of an invocation. */
const SESSION_ENDS: Record<string, readonly string[]> = {
  COMPLETED: ['COMPLETED'],
  FAILED: ['COMPLETED', 'TIMED_OUT', 'ERROR'],
};

/**
 * The errors of the history; empty when there is none. `mayWait`: a delivery with failed attempts
 * may wait for its next attempt, at the time of the schedule.
 */
export function brokenPromises(
  dataDir: string,
  acknowledged: readonly string[],
  { mayWait = false } = {},
): string[] {
  const db = new Database(join(dataDir, 'tabern.db'), { readonly: true });
  try {
    const rows = db
      .prepare<[], Row>(`
        SELECT invocations.id, invocations.status, sessions.status AS session,
          invocations.ended_at, invocations.cause
        FROM invocations LEFT JOIN sessions ON sessions.id = invocations.session_id`)
      .all();
    const known = new Set(rows.map(({ id }) => id));
    return [
      ...acknowledged
        .filter((id) => !known.has(id))
        .map((id) => `${id} was acknowledged, and lost`),
      ...rows.flatMap(wrongEnd),
      ...wrongEvents(db, rows),
      ...wrongDeliveries(db, mayWait),
      ...wrongQueues(db),
      ...damage(db),
    ];
  } finally {
    db.close();
  }
}

function wrongEnd({ id, status, session, ended_at, cause }: Row): string[] {
  const wrong: string[] = [];
  const fits = SESSION_ENDS[status];
  if (fits === undefined) return [`${id} never ended: ${status}`];
  if (!fits.includes(String(session))) wrong.push(`${id} is ${status}, its session ${session}`);
  if (ended_at === null) wrong.push(`${id} is ${status} without a time`);
  if ((status === 'FAILED') !== (cause !== null)) wrong.push(`${id} is ${status}, cause ${cause}`);
  return wrong;
}

function wrongEvents(db: Database.Database, rows: readonly Row[]): string[] {
  const ends = db.prepare<[string], EventRow>(`
    SELECT id, type FROM events
    WHERE resource_id = ?
      AND type IN ('functions.invocations.completed', 'functions.invocations.failed')`);
  return rows.flatMap(({ id, status }) => {
    const isOver = SESSION_ENDS[status] !== undefined;
    const wanted = isOver ? `functions.invocations.${status.toLowerCase()}` : '';
    const types = ends.all(id).map(({ type }) => type);
    return types.join() === wanted ? [] : [`${id} is ${status}, its end events: [${types}]`];
  });
}

type DeliveryRow = {
  type: string;
  id: string;
  state: string | null;
  tries: number;
  due: number;
  failedAt: number | null;
};

/** Every event has one delivery for each subscribed webhook, delivered or allowed to wait. */
function wrongDeliveries(db: Database.Database, mayWait: boolean): string[] {
  const rows = db
    .prepare<[], DeliveryRow>(`
      SELECT events.type, events.resource_id AS id, deliveries.state, tries, due,
        (SELECT MAX(ended_at) FROM attempts
          WHERE delivery_id = deliveries.id AND outcome <> 'interrupted') AS failedAt
      FROM events JOIN webhooks ON webhooks.project_id = events.project_id
        AND instr(webhooks.event_types, '"' || events.type || '"') > 0
      LEFT JOIN deliveries
        ON deliveries.event_id = events.id AND deliveries.webhook_id = webhooks.id`)
    .all();
  return rows
    .filter((row) => row.state !== 'delivered' && !(mayWait && isScheduled(row)))
    .map(({ id, type, state }) => `${type} of ${id}: its delivery is ${state ?? 'missing'}`);
}

/**
 * Whether the next attempt is due at the time of the schedule. Source: proto/spec/webhooks.md 6.
 */
function isScheduled({ state, tries, due, failedAt }: DeliveryRow): boolean {
  const delay = DELAYS_MS[tries - 1];
  if (state !== 'pending' || delay === undefined || failedAt === null) return false;
  const waits = due - failedAt;
  return waits >= Math.floor(delay * JITTER_MIN) && waits <= Math.ceil(delay * JITTER_MAX);
}

function wrongQueues(db: Database.Database): string[] {
  const jobs = db.prepare<[], { id: string; state: string }>(`SELECT id, state FROM jobs`).all();
  const queues = db
    .prepare<[], { kind: string; ready: number; running: number }>(`
      SELECT kind, ready, running FROM queues WHERE ready <> 0 OR running <> 0`)
    .all();
  return [
    ...jobs.map(({ id, state }) => `job ${id} is left: ${state}`),
    ...queues.map((one) => `${one.kind} queue counts ${one.ready} ready, ${one.running} running`),
  ];
}

function damage(db: Database.Database): string[] {
  const checks = [db.pragma('integrity_check', { simple: true })];
  const orphans = db.pragma('foreign_key_check') as unknown[];
  return [
    ...checks.filter((answer) => answer !== 'ok').map((answer) => `database: ${answer}`),
    ...(orphans.length > 0 ? [`${orphans.length} rows refer to nothing`] : []),
  ];
}
