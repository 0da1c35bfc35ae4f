/**
 * SQL on the database of a core's directory, on either engine: what no call shows, and what no call
 * makes.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import postgres from 'postgres';
import { isOnPostgres, urlOf } from '../engine.ts';

const DATABASE = 'tabern.db';
const INT8 = 20;
const TYPES = { bigint: { to: INT8, from: [INT8], parse: Number, serialize: String } };

type Value = string | number | Buffer;

/** The rows of a statement with `?` for its values. Names with capitals are in quotes. */
export async function rowsOf<Row extends object>(
  dir: string,
  text: string,
  ...values: Value[]
): Promise<Row[]> {
  if (isOnPostgres) return onPostgres(dir, (run) => run<Row>(text, values));
  using opened = new DisposableStack();
  const db = opened.adopt(new Sqlite(join(dir, DATABASE)), (one) => one.close());
  const statement = db.prepare<Value[], Row>(text);
  if (statement.reader) return statement.all(...values);
  statement.run(...values);
  return [];
}

/** Whether a file of the directory or a value of its database has the text. */
export async function isStored(dir: string, text: string): Promise<boolean> {
  const files = readdirSync(dir, { withFileTypes: true }).filter((one) => one.isFile());
  if (files.some(({ name }) => readFileSync(join(dir, name)).includes(text))) return true;
  if (!isOnPostgres) return false;
  return onPostgres(dir, async (run) => {
    const tables = await run<{ name: string }>(
      'SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()',
    );
    for (const { name } of tables) {
      const values = (await run<object>(`SELECT * FROM ${name}`)).flatMap(Object.values);
      if (values.some((value) => bytesOf(value).includes(text))) return true;
    }
    return false;
  });
}

function bytesOf(value: unknown): Buffer {
  return Buffer.isBuffer(value) ? value : Buffer.from(String(value));
}

type Run = <Row extends object>(text: string, values?: Value[]) => Promise<Row[]>;

async function onPostgres<T>(dir: string, use: (run: Run) => Promise<T>): Promise<T> {
  const sql = postgres(await urlOf(dir), { max: 1, onnotice: () => {}, types: TYPES });
  const numbered = (text: string) => {
    let count = 0;
    return text.replaceAll('?', () => `$${++count}`);
  };
  const run: Run = async (text, values = []) =>
    [...(await sql.unsafe(numbered(text), values))] as never;
  try {
    return await use(run);
  } finally {
    await sql.end();
  }
}
