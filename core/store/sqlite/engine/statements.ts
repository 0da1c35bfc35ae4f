/**
 * Prepared SQL statements as functions: `find: row('SELECT ...')` takes the statement's parameters
 * and returns its row, with the types that the store declares for `find`. Each is prepared once.
 * SQLite binds `undefined` as NULL.
 */
import type { Statement } from 'better-sqlite3';
import { must } from '../../../../proto/common/must.ts';
import type { Read } from '../../operations/steps.ts';
import type { Page, PageOf } from '../../types/functions.ts';
import { found } from './steps.ts';
import type { Tx } from './transaction.ts';

type Sql<Args extends unknown[], Value> = (...args: Args) => Value;

/** For operations that are functions. SQLite may plan them anew for their values, at each call. */
export function queries({ db }: Pick<Tx, 'db'>) {
  return functionsOf((sql) => db.prepare<unknown[], unknown>(sql));
}

/** For statements that run often and find their rows by one index, whatever the values are. */
export function frequentQueries({ db }: Pick<Tx, 'db'>) {
  return functionsOf((sql) => db.prepare<unknown[], unknown>(plannedOnce(sql)));
}

/**
 * SQLite plans a statement anew at each call, for 5 to 60 us, where a value of a parameter may
 * change its plan: `column = ?` in most joins, and on tables with statistics. It does not examine
 * the expression `+?`, which has the same value.
 */
function plannedOnce(sql: string): string {
  return sql.replace(/(=|\bIS) (?=[?@])/g, '$1 +');
}

function functionsOf(prepare: (sql: string) => Statement<unknown[], unknown>) {
  return {
    /** The first row. */
    row<Args extends unknown[], Row>(sql: string): Sql<Args, Row | undefined> {
      const statement = prepare(sql);
      return (...args) => statement.get(...args) as Row | undefined;
    },
    rows<Args extends unknown[], Row>(sql: string): Sql<Args, Row[]> {
      const statement = prepare(sql);
      return (...args) => statement.all(...args) as Row[];
    },
    /** The first column of the first row. */
    value<Args extends unknown[], Value>(sql: string): Sql<Args, Value | undefined> {
      const statement = prepare(sql).pluck();
      return (...args) => statement.get(...args) as Value | undefined;
    },
    /** The first column of each row. */
    values<Args extends unknown[], Value>(sql: string): Sql<Args, Value[]> {
      const statement = prepare(sql).pluck();
      return (...args) => statement.all(...args) as Value[];
    },
    /** The first column of the first row; 0 for NULL. */
    number<Args extends unknown[]>(sql: string): Sql<Args, number> {
      const statement = prepare(sql).pluck();
      return (...args) => (statement.get(...args) as number | null | undefined) ?? 0;
    },
    /** Whether there is a row. */
    exists<Args extends unknown[]>(sql: string): Sql<Args, boolean> {
      const statement = prepare(sql);
      return (...args) => statement.get(...args) !== undefined;
    },
    /** How many rows it changes. */
    changes<Args extends unknown[]>(sql: string): Sql<Args, number> {
      const statement = prepare(sql);
      return (...args) => statement.run(...args).changes;
    },
    write<Args extends unknown[]>(sql: string): Sql<Args, void> {
      const statement = prepare(sql);
      return (...args) => void statement.run(...args);
    },
  };
}

/** For operations in steps, which are frequent: what reads gives a `Read`. */
export function statements(tx: Pick<Tx, 'db'>) {
  const { row, rows, value, values, number, exists, changes, write } = frequentQueries(tx);
  return {
    row: <Args extends unknown[], Row>(sql: string) => read(row<Args, Row>(sql)),
    rows: <Args extends unknown[], Row>(sql: string) => read(rows<Args, Row>(sql)),
    value: <Args extends unknown[], Value>(sql: string) => read(value<Args, Value>(sql)),
    values: <Args extends unknown[], Value>(sql: string) => read(values<Args, Value>(sql)),
    number: <Args extends unknown[]>(sql: string) => read(number<Args>(sql)),
    exists: <Args extends unknown[]>(sql: string) => read(exists<Args>(sql)),
    changes: <Args extends unknown[]>(sql: string) => read(changes<Args>(sql)),
    /** Whether it changes a row. */
    changed<Args extends unknown[]>(sql: string): Sql<Args, Read<boolean>> {
      const change = changes<Args>(sql);
      return (...args) => found(change(...args) > 0);
    },
    /** The row that it returns; there always is one. */
    returned<Args extends unknown[], Row>(sql: string): Sql<Args, Read<Row>> {
      const get = row<Args, Row>(sql);
      return (...args) => found(must(get(...args), 'returned row'));
    },
    /** The first column of that row. */
    returnedValue<Args extends unknown[], Value>(sql: string): Sql<Args, Read<Value>> {
      const get = value<Args, Value>(sql);
      return (...args) => found(must(get(...args), 'returned value'));
    },
    write,
  };
}

function read<Args extends unknown[], Value>(get: Sql<Args, Value>): Sql<Args, Read<Value>> {
  return (...args) => found(get(...args));
}

/**
 * Pages of a list, newest id first, with the total over all pages. `from`: the tables, and the
 * condition.
 */
export function pages<Wanted extends PageOf<object>, Row>(
  tx: Pick<Tx, 'db'>,
  { columns, from }: { columns: string; from: string },
): (wanted: Wanted) => Page<Row> {
  const { rows, number } = queries(tx);
  const page = rows<[Wanted], Row>(`
    SELECT ${columns} FROM ${from} ORDER BY id DESC LIMIT @limit OFFSET @offset`);
  const total = number<[Wanted]>(`SELECT COUNT(*) FROM ${from}`);
  return (wanted) => ({ rows: page(wanted), total: total(wanted) });
}

/** A condition on a state: `IN ('PENDING', 'RUNNING')`. See core/store/operations/states.ts. */
export function inStates(states: readonly string[]): string {
  return `IN (${states.map((state) => `'${state}'`).join(', ')})`;
}
