/** Copies tables into PostgreSQL, inside the caller's transaction. */
import type { Connection } from '../postgres/engine/connection.ts';
import { storable } from '../postgres/engine/sql-text.ts';
import { renumberEvents } from '../postgres/webhooks/renumber.ts';
import type { MovedTable } from '../types/database.ts';
import { Checksum } from './tables.ts';

/** Values of one statement; the protocol allows 65,535. Ours: some 100 kB of small rows. */
const VALUES_MAX = 4_000;
/** Bytes of one statement: a row may have megabytes. */
const BYTES_MAX = 8 << 20;
/** Rows of one answer, where they are small. */
const FETCH_ROWS = 500;

export type Copied = { name: string; rows: number; checksum: string };

type Target = { connection: Connection; signal: AbortSignal; moved: (rows: number) => void };

export async function copyTables(tables: readonly MovedTable[], target: Target): Promise<Copied[]> {
  const { connection } = target;
  const copied: Copied[] = [];
  for (const table of tables) {
    const name = `"${table.name}"`;
    // The counters of triggers are tables that are copied as they are.
    await connection.command(`ALTER TABLE ${name} DISABLE TRIGGER USER`);
    const { checksum: wanted, largest } = await insertAll(table, target);
    await connection.command(`ALTER TABLE ${name} ENABLE TRIGGER USER`);
    const fetched = Math.max(1, Math.min(FETCH_ROWS, Math.floor(BYTES_MAX / largest)));
    const found = await checksumOf(table, { ...target, fetched });
    if (`${found}` !== `${wanted}`) {
      throw new Error(`${table.name} was not copied as it is: ${wanted}, and not ${found}`);
    }
    copied.push({ name: table.name, rows: found.rows, checksum: `${found}` });
  }
  await continueNumbers(connection);
  await renumberEvents(connection);
  return copied;
}

/** `largest`: the bytes of a row. */
async function insertAll(
  table: MovedTable,
  target: Target,
): Promise<{ checksum: Checksum; largest: number }> {
  const checksum = new Checksum();
  let largest = 1;
  const rowsMax = Math.floor(VALUES_MAX / table.columns.length);
  let batch: unknown[][] = [];
  let bytes = 0;
  const send = async (): Promise<void> => {
    target.signal.throwIfAborted();
    if (batch.length > 0) await insert(table, batch, target.connection);
    target.moved(batch.length);
    batch = [];
    bytes = 0;
  };
  for (const stored of table.rows()) {
    const row = stored.map(storable);
    checksum.add(row);
    batch.push(row);
    const size = row.reduce<number>((sum, value) => sum + sizeOf(value), 0);
    largest = Math.max(largest, size);
    bytes += size;
    if (batch.length >= rowsMax || bytes >= BYTES_MAX) await send();
  }
  await send();
  return { checksum, largest };
}

function sizeOf(value: unknown): number {
  return typeof value === 'string' || value instanceof Uint8Array ? value.length : 8;
}

async function insert(table: MovedTable, rows: unknown[][], connection: Connection) {
  const { name, columns } = table;
  const width = columns.length;
  const tuple = (row: number) => columns.map((_, column) => `$${row * width + column + 1}`);
  const tuples = rows.map((_, row) => `(${tuple(row).join(', ')})`).join(', ');
  const text = `INSERT INTO "${name}" (${listOf(table)}) VALUES ${tuples}`;
  await connection.send(text, rows.flat());
}

/** `fetched`: rows of one answer, which is in memory. */
async function checksumOf(
  table: MovedTable,
  { connection, signal, fetched }: Omit<Target, 'moved'> & { fetched: number },
): Promise<Checksum> {
  const checksum = new Checksum();
  await connection.command(
    `DECLARE moved NO SCROLL CURSOR FOR SELECT ${listOf(table)} FROM "${table.name}"`,
  );
  for (;;) {
    signal.throwIfAborted();
    const rows = await connection.command(`FETCH ${fetched} FROM moved`);
    for (const row of rows) checksum.add(table.columns.map((column) => row[column]));
    if (rows.length < fetched) break;
  }
  await connection.command('CLOSE moved');
  return checksum;
}

function listOf({ columns }: MovedTable): string {
  return columns.map((column) => `"${column}"`).join(', ');
}

/** New rows get numbers after those of the moved ones. */
async function continueNumbers(connection: Connection): Promise<void> {
  const columns = await connection.command(`
    SELECT table_name AS "table", column_name AS "column" FROM information_schema.columns
    WHERE table_schema = current_schema() AND is_identity = 'YES'`);
  for (const { table, column } of columns) {
    await connection.command(`
      SELECT setval(pg_get_serial_sequence('"${table}"', '${column}'),
        (SELECT COALESCE(MAX("${column}"), 0) + 1 FROM "${table}"), FALSE)`);
  }
  await connection.command(`
    SELECT setval('webhooks_served', (SELECT COALESCE(MAX(last_served), 0) + 1 FROM webhooks),
    FALSE)`);
}
