/**
 * Compares a database of SQLite with the one in PostgreSQL that it was moved to, by other reads
 * than those of the move: each table has as many rows, with the same sum of hashes.
 */
import { createHash } from 'node:crypto';
import Database from 'better-sqlite3';
import postgres from 'postgres';

const FETCH_ROWS = 500;

/** `rows, sum` of each table, by its name. */
export type Sums = Record<string, string>;

type Table = { name: string; columns: string[] };

type File = { id: string; sha256: string };

/** Of the file of SQLite. `files`: those that the rows name. */
export function sumsOfFile(path: string): { tables: Table[]; sums: Sums; files: File[] } {
  using opened = new DisposableStack();
  const db = opened.adopt(new Database(path, { readonly: true }), (one) => one.close());
  const names = db
    .prepare<[], string>(
      `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
        AND name <> 'migrations' ORDER BY name`,
    )
    .pluck()
    .all();
  const columns = db.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck();
  const tables = names.map((name) => ({ name, columns: columns.all(name).filter(isKept(name)) }));
  const sums = tables.map((table) => {
    const rows = db.prepare<[], unknown[]>(selectOf(table)).raw().iterate();
    const sum = new Sum();
    for (const row of rows) sum.add(row);
    return [table.name, String(sum)];
  });
  const files = db.prepare<[], File>('SELECT id, sha256 FROM blobs').all();
  return { tables, sums: Object.fromEntries(sums), files };
}

/** Of the same tables and columns in PostgreSQL. */
export async function sumsOfServer(url: string, tables: readonly Table[]): Promise<Sums> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await using _ = { [Symbol.asyncDispose]: () => sql.end() };
  const sums: Sums = {};
  for (const table of tables) {
    const sum = new Sum();
    for await (const rows of sql.unsafe(selectOf(table)).values().cursor(FETCH_ROWS)) {
      for (const row of rows) sum.add(row);
    }
    sums[table.name] = String(sum);
  }
  return sums;
}

/** A number of SQLite is none of PostgreSQL's transactions: events get others, in their order. */
function isKept(table: string): (column: string) => boolean {
  return (column) => !(table === 'events' && column === 'seq');
}

function selectOf({ name, columns }: Table): string {
  return `SELECT ${columns.map((column) => `"${column}"`).join(', ')} FROM "${name}"`;
}

/** The same for any order of the rows. */
class Sum {
  #rows = 0;
  #sum = 0n;

  add(row: readonly unknown[]): void {
    const hash = createHash('sha256');
    for (const value of row) hash.update(`${textOf(value)}\0`);
    this.#sum = BigInt.asUintN(256, this.#sum + BigInt(`0x${hash.digest('hex')}`));
    this.#rows += 1;
  }

  toString(): string {
    return `${this.#rows} rows, ${this.#sum.toString(16)}`;
  }
}

function textOf(value: unknown): string {
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString('base64')}`;
  return value === null ? 'null' : `= ${value}`;
}

/** The rows of all tables together. */
export function rowsOf(sums: Sums): number {
  const counts = Object.values(sums).map((text) => Number.parseInt(text, 10));
  return counts.reduce((sum, count) => sum + count, 0);
}
