/**
 * Takes the database of a data directory over to PostgreSQL, while no core uses either. All rows
 * are inserted in one transaction, read back and compared by a checksum of each table before the
 * commit: the move is complete or has changed nothing.
 */
import { ConfigError } from '../../../proto/common/env.ts';
import { Connection, type ConnectionOptions } from '../postgres/engine/connection.ts';
import { startError } from '../postgres/engine/errors.ts';
import { migrate } from '../postgres/engine/migrate.ts';
import { openTables } from '../sqlite/engine/tables.ts';
import { type Copied, copyTables } from './copy.ts';

export type MovedDatabase = { tables: Copied[]; rows: number };

/** Throws ConfigError when the directory is in use, or the database cannot be used or has data. */
export async function moveDatabase(
  { dir, ...server }: { dir: string; url: string; ca?: string | undefined },
  { signal, moved }: { signal: AbortSignal; moved: (rows: number) => void },
): Promise<MovedDatabase> {
  await using connection = await openTarget(server);
  using source = openTables(dir);
  await connection.command('BEGIN');
  // without the commit, the end of the connection undoes all
  const tables = await copyTables(source.tables, { connection, signal, moved });
  await connection.command('COMMIT');
  await connection.command('ANALYZE');
  return { tables, rows: tables.reduce((sum, { rows }) => sum + rows, 0) };
}

async function openTarget(server: Pick<ConnectionOptions, 'url' | 'ca'>): Promise<Connection> {
  try {
    await using opened = new AsyncDisposableStack();
    const connection = await Connection.open({ ...server, isPooled: false, name: 'tabern move' });
    opened.use(connection);
    await migrate(connection);
    await checkEmpty(connection);
    opened.move();
    return connection;
  } catch (error) {
    throw startError(error, 'the URL of the database');
  }
}

async function checkEmpty(connection: Connection): Promise<void> {
  const found = await connection.command(`
    SELECT 1 FROM projects UNION ALL SELECT 1 FROM master_key_check LIMIT 1`);
  if (found.length > 0) {
    throw new ConfigError(
      'the database of --to has data of tabern already: create an empty one (createdb)',
    );
  }
}
