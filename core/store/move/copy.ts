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

export type Copied = { name: string; rows: number; checksum: string };

type Target = { connection: Connection; signal: AbortSignal; moved: (rows: number) => void };

export async function copyTables(tables: readonly MovedTable[], target: Target): Promise<Copied[]> {
  const { connection } = target;
  const copied: Copied[] = [];
  for (const table of tables) {
    const name = `"${table.name}"`;
    // The counters of triggers are tables that are copied as they are.
    await connection.command(`ALTER TABLE ${name} DISABLE TRIGGER USER`);
    const { checksum: wanted, batches } = await insertAll(table, target);
    await connection.command(`ALTER TABLE ${name} ENABLE TRIGGER USER`);
    const found = await checksumOf(table, { ...target, batches });
    if (`${found}` !== `${wanted}`) {
      throw new Error(`${table.name} was not copied as it is: ${wanted}, and not ${found}`);
    }
    copied.push({ name: table.name, rows: found.rows, checksum: `${found}` });
  }
  await continueNumbers(connection);
  await renumberEvents(connection);
  return copied;
}

/** `batches`: the rows of each statement. */
async function insertAll(
  table: MovedTable,
  target: Target,
): Promise<{ checksum: Checksum; batches: number[] }> {
  const checksum = new Checksum();
  const batches: number[] = [];
  const rowsMax = Math.floor(VALUES_MAX / table.columns.length);
  let batch: unknown[][] = [];
  let bytes = 0;
  const send = async (): Promise<void> => {
    target.signal.throwIfAborted();
    if (batch.length === 0) return;
    await insert(table, batch, target.connection);
    batches.push(batch.length);
    target.moved(batch.length);
    batch = [];
    bytes = 0;
  };
  for (const stored of table.rows()) {
    const row = stored.map(storable);
    checksum.add(row);
    batch.push(row);
    bytes += row.reduce<number>((sum, value) => sum + sizeOf(value), 0);
    if (batch.length >= rowsMax || bytes >= BYTES_MAX) await send();
  }
  await send();
  return { checksum, batches };
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

/**
 * Reads the rows in their places, which are in the order of the statements: an answer, which is in
 * memory, is as large as one of them.
 */
async function checksumOf(
  table: MovedTable,
  { connection, signal, batches }: Omit<Target, 'moved'> & { batches: readonly number[] },
): Promise<Checksum> {
  const checksum = new Checksum();
  await connection.command(
    `DECLARE moved NO SCROLL CURSOR FOR SELECT ${listOf(table)} FROM "${table.name}"`,
  );
  const more = 1; // a row that was not inserted here would be found
  for (const count of [...batches, more]) {
    signal.throwIfAborted();
    const rows = await connection.command(`FETCH ${count} FROM moved`);
    for (const row of rows) checksum.add(table.columns.map((column) => row[column]));
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
