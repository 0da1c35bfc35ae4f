/**
 * SQL statements as functions: `find: row('SELECT ...')` takes the statement's parameters and gives
 * its row, with the types that the store declares for `find`. A statement is sent when its function
 * is called; `yield*` waits for its answer. `undefined` is NULL.
 */
import { must } from '../../../../proto/common/must.ts';
import type { Read } from '../../operations/steps.ts';
import type { Page, PageOf } from '../../types/functions.ts';
import type { Result } from './connection.ts';
import { sqlText } from './sql-text.ts';
import { answered } from './steps.ts';
import type { Tx } from './transaction.ts';

type Sql<Args extends unknown[], Value> = (...args: Args) => Value;

export function statements(tx: Pick<Tx, 'send'>) {
  function reading<Args extends unknown[], Value>(sql: string, pick: (result: Result) => Value) {
    const { text, values } = sqlText(sql);
    return (...args: Args): Read<Value> => answered(tx.send(text, values(args)), pick);
  }
  return {
    /** The first row. */
    row: <Args extends unknown[], Row>(sql: string) =>
      reading<Args, Row | undefined>(sql, ([row]) => row as Row | undefined),
    rows: <Args extends unknown[], Row>(sql: string) =>
      reading<Args, Row[]>(sql, (rows) => [...rows] as Row[]),
    /** The first column of the first row. */
    value: <Args extends unknown[], Value>(sql: string) =>
      reading<Args, Value | undefined>(sql, ([row]) => row && (first(row) as Value)),
    /** The first column of each row. */
    values: <Args extends unknown[], Value>(sql: string) =>
      reading<Args, Value[]>(sql, (rows) => rows.map((row) => first(row) as Value)),
    /** The first column of the first row; 0 for NULL. */
    number: <Args extends unknown[]>(sql: string) =>
      reading<Args, number>(sql, ([row]) => Number((row && first(row)) ?? 0)),
    /** Whether there is a row. */
    exists: <Args extends unknown[]>(sql: string) =>
      reading<Args, boolean>(sql, (rows) => rows.length > 0),
    /** How many rows it changes. */
    changes: <Args extends unknown[]>(sql: string) =>
      reading<Args, number>(sql, ({ count }) => count),
    /** Whether it changes a row. */
    changed: <Args extends unknown[]>(sql: string) =>
      reading<Args, boolean>(sql, ({ count }) => count > 0),
    /** The row that it returns; there always is one. */
    returned: <Args extends unknown[], Row>(sql: string) =>
      reading<Args, Row>(sql, ([row]) => must(row, 'returned row') as Row),
    /** The first column of that row. */
    returnedValue: <Args extends unknown[], Value>(sql: string) =>
      reading<Args, Value>(sql, ([row]) => first(must(row, 'returned row')) as Value),
    write<Args extends unknown[]>(sql: string): Sql<Args, void> {
      const { text, values } = sqlText(sql);
      return (...args) => void tx.send(text, values(args)); // its failure fails the operation
    },
    /** A write as an operation of its own: it gives nothing. */
    done: <Args extends unknown[]>(sql: string) => reading<Args, void>(sql, () => undefined),
  };
}

/**
 * Statements whose plan depends on their values: ranges, and projects of any size. A plan for any
 * values would read far more than the limit of a page.
 */
export function plannedAnew(tx: Pick<Tx, 'send'>): ReturnType<typeof statements> {
  return statements({ send: (text, values) => tx.send(text, values, true) });
}

function first(row: Record<string, unknown>): unknown {
  return Object.values(row)[0];
}

/**
 * Pages of a list, newest id first, with the total over all pages. `from`: the tables, and the
 * condition.
 */
export function pages<Wanted extends PageOf<object>, Row>(
  tx: Pick<Tx, 'send'>,
  { columns, from }: { columns: string; from: string },
): (wanted: Wanted) => Read<Page<Row>> {
  const { rows, number } = statements(tx);
  const page = rows<[Wanted], Row>(`
    SELECT ${columns} FROM ${from} ORDER BY id DESC LIMIT @limit OFFSET @offset`);
  const total = number<[Wanted]>(`SELECT COUNT(*) FROM ${from}`);
  return (wanted) => {
    const [reading, counting] = [page(wanted), total(wanted)];
    return {
      *[Symbol.iterator]() {
        return { rows: yield* reading, total: yield* counting };
      },
    };
  };
}

/** A condition on a state: `IN ('PENDING', 'RUNNING')`. See core/store/operations/states.ts. */
export function inStates(states: readonly string[]): string {
  return `IN (${states.map((state) => `'${state}'`).join(', ')})`;
}
