/** A database as SQL text, which a diff can show, and back. */
import type { Database } from 'better-sqlite3';

type Column = { name: string };
type Value = string | number | bigint | Buffer | null;

export function dumpOf(db: Database): string {
  const made = db
    .prepare<[], { type: string; name: string; sql: string }>(`
      SELECT type, name, sql FROM sqlite_schema
      WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid`)
    .all();
  const tables = made.filter(({ type }) => type === 'table');
  const rest = made.filter(({ type }) => type !== 'table');
  return [
    ...tables.map(({ sql }) => `${sql};`),
    ...tables.flatMap(({ name }) => rowsOf(db, name)),
    ...rest.map(({ sql }) => `${sql};`),
    '',
  ].join('\n');
}

function rowsOf(db: Database, table: string): string[] {
  const columns = db.pragma(`table_info(${table})`) as Column[];
  const names = columns.map(({ name }) => name).join(', ');
  const rows = db.prepare<[], Value[]>(`SELECT ${names} FROM ${table}`).raw().all();
  return rows.map(
    (row) => `INSERT INTO ${table} (${names}) VALUES (${row.map(literal).join(', ')});`,
  );
}

function literal(value: Value): string {
  if (value === null) return 'NULL';
  if (Buffer.isBuffer(value)) return `X'${value.toString('hex')}'`;
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value);
}
