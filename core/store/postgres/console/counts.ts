/**
 * Counts over time. A call counts a limited number of rows, the newest first, and returns the place
 * from which the next one counts on.
 */

import type { Steps } from '../../operations/steps.ts';
import { reasonLabel } from '../../operations/texts.ts';
import type {
  ConsoleCount,
  ConsoleCountsWanted,
  ConsoleOps,
  Position,
} from '../../types/console.ts';
import { plannedAnew } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

/** Rows that one call counts. Ours: a few milliseconds of the database. */
const COUNTED_MAX = 5_000;
/** Events, each with the deliveries of at most 100 webhooks. */
const EVENTS_MAX = 500;

type Counts = ReturnType<ConsoleOps['consoleCounts']>;
type Count = (wanted: ConsoleCountsWanted) => Steps<Counts>;

/** What is counted: the table with its index, the part of it, and what it may be grouped by. */
type Counted = { table: string; where: string; groups: Readonly<Record<string, string>> };

const OF_PROJECT = 'project_id = @projectId';
const COUNTED = {
  sessions: {
    table: 'sessions',
    where: OF_PROJECT,
    // the beginning of a reason has its label
    groups: {
      status: 'status',
      reason: `status || ':' || COALESCE(substr(end_reason, 1, 80), '')`,
    },
  },
  invocations: {
    table: 'invocations',
    where: OF_PROJECT,
    groups: { status: 'status', function: 'function_id' },
  },
  ofFunction: {
    table: 'invocations',
    where: 'function_id = @functionId',
    groups: { status: 'status', function: 'function_id' },
  },
  builds: {
    table: 'builds',
    where: OF_PROJECT,
    groups: { status: 'status' },
  },
} satisfies Record<string, Counted>;

export function consoleCountOps(tx: Tx): InReads<Pick<ConsoleOps, 'consoleCounts'>> {
  const all = Object.entries(COUNTED).map(([kind, counted]) => [kind, counter(tx, counted)]);
  const count = Object.fromEntries(all) as Record<keyof typeof COUNTED, Count>;
  const deliveries = deliveryCounter(tx);
  const isOwn = plannedAnew(tx).exists<[object]>(
    'SELECT 1 FROM functions WHERE id = @functionId AND project_id = @projectId',
  );
  return {
    *consoleCounts(wanted) {
      const { kind, functionId } = wanted;
      if (kind === 'deliveries') return yield* deliveries(wanted);
      if (functionId === undefined) return yield* count[kind](wanted);
      return (yield* isOwn(wanted)) ? yield* count.ofFunction(wanted) : { counts: [] };
    },
  };
}

function counter(tx: Tx, { table, where, groups }: Counted): Count {
  const { row, rows } = plannedAnew(tx);
  const range = `${where} AND created_at >= @from AND (created_at, id) < (@beforeAt, @beforeId)`;
  const order = 'ORDER BY created_at DESC, id DESC';
  const lowest = row<[object], Position>(`
    SELECT created_at AS at, id FROM ${table} WHERE ${range}
    ${order} LIMIT 1 OFFSET ${COUNTED_MAX - 1}`);
  const countBy = (key: string) =>
    rows<[object], ConsoleCount>(`
      SELECT created_at / @bucketMs::BIGINT AS bucket, key, COUNT(*) AS count
      FROM (SELECT created_at, ${key} AS key FROM ${table} WHERE ${range}
        ${order} LIMIT ${COUNTED_MAX}) AS newest GROUP BY 1, 2 ORDER BY 1, 2`);
  const by = new Map(Object.entries(groups).map(([name, key]) => [name, countBy(key)]));
  const total = countBy(`''`);
  return function* ({ group, from, to, before, ...rest }) {
    const start = before ?? { at: to, id: '' };
    const bounds = { ...rest, from, beforeAt: start.at, beforeId: start.id };
    const count = (group === undefined ? undefined : by.get(group)) ?? total;
    const [counting, next] = [count(bounds), lowest(bounds)];
    const counts = yield* counting;
    return { counts: group === 'reason' ? counts.map(labelled) : counts, next: yield* next };
  };
}

/** Several reasons have one label. Earlier, the session of an invocation had no reason. */
function labelled({ key, ...same }: ConsoleCount): ConsoleCount {
  const [, status, reason = ''] = /^(\w+):(.*)$/s.exec(key) ?? [];
  if (status === 'PENDING' || status === 'RUNNING') return { ...same, key: status.toLowerCase() };
  const label = reasonLabel(reason);
  return {
    ...same,
    key: label === 'function' && status !== 'COMPLETED' ? 'function_failed' : label,
  };
}

/** By events, each with all of its deliveries. */
function deliveryCounter(tx: Tx): Count {
  const { row, rows } = plannedAnew(tx);
  const range = `project_id = @projectId AND created_at >= @from
    AND (created_at, id) < (@beforeAt, @beforeId)`;
  const lowest = row<[object], Position>(`
    SELECT created_at AS at, id FROM events WHERE ${range}
    ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET ${EVENTS_MAX - 1}`);
  const countBy = (key: string) =>
    rows<[object], ConsoleCount>(`
      SELECT newest.created_at / @bucketMs::BIGINT AS bucket, ${key} AS key,
        COUNT(*) AS count
      FROM (SELECT created_at, id FROM events WHERE ${range}
        ORDER BY created_at DESC, id DESC LIMIT ${EVENTS_MAX}) AS newest
      JOIN deliveries ON deliveries.event_id = newest.id GROUP BY 1, 2 ORDER BY 1, 2`);
  const by = { status: countBy('upper(deliveries.state)'), webhook: countBy('webhook_id') };
  const total = countBy(`''`);
  return function* ({ group, from, to, before, ...rest }) {
    const start = before ?? { at: to, id: '' };
    const bounds = { ...rest, from, beforeAt: start.at, beforeId: start.id };
    const count = group === 'status' || group === 'webhook' ? by[group] : total;
    const [counts, next] = [count(bounds), lowest(bounds)];
    return { counts: yield* counts, next: yield* next };
  };
}
