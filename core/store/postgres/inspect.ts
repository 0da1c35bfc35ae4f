/** Reads a database of PostgreSQL without a change: its problems, and what the doctor compares. */
import type { Inspected } from '../types/database.ts';
import { Connection, type ConnectionOptions } from './engine/connection.ts';
import { startError } from './engine/errors.ts';
import { checkServer, isNewer } from './engine/migrate.ts';

/** Cores may use the database. */
export async function inspectPostgres(
  server: Pick<ConnectionOptions, 'url' | 'ca'>,
): Promise<Inspected> {
  const nothing = { problems: [] as string[], blobs: [], masterKeyCheck: null, lastTime: 0 };
  try {
    await using connection = await Connection.open({
      ...server,
      isPooled: false,
      name: 'tabern doctor',
    });
    await checkServer(connection);
    const [made] = await connection.command(`SELECT to_regclass('migrations') IS NOT NULL AS is`);
    if (made?.['is'] !== true) return nothing;
    if (await isNewer(connection)) {
      return { ...nothing, problems: ['the database was written by a newer tabern'] };
    }
    const blobs = await connection.command('SELECT id, size, sha256 FROM blobs');
    const [row] = await connection.command(`
      SELECT (SELECT sealed FROM master_key_check) AS sealed, (SELECT at FROM heartbeat) AS at`);
    return {
      problems: [],
      blobs: [...blobs] as Inspected['blobs'],
      masterKeyCheck: (row?.['sealed'] ?? null) as Uint8Array | null,
      lastTime: Number(row?.['at'] ?? 0),
    };
  } catch (error) {
    const { message } = startError(error, 'TABERN_DATABASE_URL') as Error;
    return { ...nothing, problems: [message] };
  }
}
