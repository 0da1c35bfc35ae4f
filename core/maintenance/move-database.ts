/**
 * `tabern move --to`: takes the database of a data directory over to PostgreSQL, while no core
 * runs. The directory keeps its keys, and the old database under another name, so that no core
 * starts on it by mistake.
 */
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { syncDirectory } from '../../proto/common/durable.ts';
import { ConfigError, type Env } from '../../proto/common/env.ts';
import { readCoreConfig } from '../config.ts';
import { DATABASE, hasDatabase } from '../store/database-file.ts';
import { moveDatabase } from '../store/move/move.ts';

export type MovedToPostgres = {
  tables: number;
  rows: number;
  /** The old database. */
  kept: string;
};

/** Throws ConfigError when the directory or the database cannot be used. */
export async function moveToPostgres(
  env: Env,
  { signal, moved }: { signal: AbortSignal; moved: (rows: number) => void },
): Promise<MovedToPostgres> {
  const { dataDir, database } = readCoreConfig(env);
  if (database === undefined) throw new ConfigError('name the database: --to postgres://...');
  if (!hasDatabase(dataDir)) {
    throw new ConfigError(`${dataDir} has no database of SQLite: set TABERN_DATA or --data`);
  }
  const place = { dir: dataDir, url: database.directUrl, ca: database.ca };
  const { tables, rows } = await moveDatabase(place, { signal, moved });
  const kept = join(dataDir, `${DATABASE}.moved`);
  for (const end of ['', '-wal', '-shm']) {
    const path = join(dataDir, DATABASE + end);
    if (existsSync(path)) renameSync(path, kept + end);
  }
  syncDirectory(dataDir);
  return { tables: tables.length, rows, kept };
}
