/**
 * A walk over a list that is newest first, by an index whose key is (project, time, id). A page
 * examines a limited number of index entries, whatever its filters match.
 */
import type { Read, Steps } from '../../operations/steps.ts';
import type { Listed, ListWanted, Position } from '../../types/console.ts';
import { plannedAnew } from '../engine/statements.ts';
import type { Tx } from '../engine/transaction.ts';

/** Index entries that one page examines. Ours: a few milliseconds of the database. */
export const ENTRIES_MAX = 10_000;
/** Rows that one page examines when its filter needs more than the index. Ours: as above. */
export const ROWS_MAX = 2_000;

/** What a walk reads, as SQL. */
export type Walk = {
  columns: string;
  /** The table: its index follows from the conditions. */
  table: string;
  /** Joins after the table. */
  joins?: string;
  /** What chooses the part of the index. */
  where: string;
  /** Conditions on the examined rows. */
  filter?: string;
  /** The columns of the key. */
  at: string;
  id: string;
};

type Reads<Row> = (wanted: object) => Read<Row[]>;
type Found = { id: string; createdAt: number };

/** A page of at most `wanted.limit` rows, of at most `scanMax` that are examined. */
export function walks<Wanted extends ListWanted, Row extends Found>(
  tx: Tx,
  { columns, table, joins = '', where, filter = 'TRUE', at, id }: Walk,
): (wanted: Wanted, scanMax: number) => Steps<Listed<Row>> {
  const { row, rows } = plannedAnew(tx);
  const range = `${where} AND (${at}, ${id}) < (@beforeAt, @beforeId)`;
  const order = `ORDER BY ${at} DESC, ${id} DESC`;
  const lowest = row<[object], Position>(`
    SELECT ${at} AS at, ${id} AS id FROM ${table} WHERE ${range} AND ${at} >= @from
    ${order} LIMIT 1 OFFSET @scanMax - 1`);
  // Its lower bound is that place and no other: else it would examine all that is below.
  const page: Reads<Row> = rows(`
    SELECT ${columns} FROM ${table} ${joins}
    WHERE ${range} AND (${at}, ${id}) >= (@lowAt, @lowId) AND ${filter}
    ${order} LIMIT @limit + 1`);

  return function* (wanted, scanMax) {
    const { before, to, ...rest } = wanted;
    const start = before !== undefined && before.at < to ? before : { at: to, id: '' };
    const bounds = { ...rest, beforeAt: start.at, beforeId: start.id, scanMax };
    const low = yield* lowest(bounds);
    const found = yield* page({
      ...bounds,
      lowAt: low?.at ?? wanted.from,
      lowId: low?.id ?? '',
    });
    const shown = found.slice(0, wanted.limit);
    const last = shown.at(-1);
    const isMore = found.length > wanted.limit && last !== undefined;
    return { rows: shown, next: isMore ? { at: last.createdAt, id: last.id } : low };
  };
}
