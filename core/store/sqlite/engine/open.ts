/**
 * Opens a data directory: acquires the instance lock, sets the pragmas, runs missing migrations.
 * The lock is an exclusive transaction on lock.db until the process ends, even by kill -9.
 */
import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { ANOTHER_RUNS, ConfigError } from '../../../../proto/common/env.ts';
import type { ThreadOptions } from '../../messages.ts';
import { migrate } from './migrate.ts';

/** In KiB, when negative. */
const CACHE_SIZE = -16_000;
const WAL_LIMIT_BYTES = 64 << 20;

export type OpenDatabase = { db: Database; close(): void };

/**
 * Throws ConfigError when another process holds the directory, or the database is newer than this
 * code.
 */
export function openDatabase(options: Pick<ThreadOptions, 'dir' | 'durability'>): OpenDatabase {
  const lock = takeLock(options.dir);
  try {
    const db = new Sqlite(ownFile(options.dir, 'tabern.db'), { timeout: 5_000 });
    db.pragma('journal_mode = WAL');
    db.pragma(`synchronous = ${options.durability === 'full' ? 'FULL' : 'NORMAL'}`);
    db.pragma('foreign_keys = ON');
    db.pragma('trusted_schema = OFF');
    db.pragma('temp_store = MEMORY');
    db.pragma(`cache_size = ${CACHE_SIZE}`);
    db.pragma(`journal_size_limit = ${WAL_LIMIT_BYTES}`);
    migrate(db);
    return {
      db,
      close() {
        optimize(db);
        db.close();
        lock.close();
      },
    };
  } catch (error) {
    lock.close();
    throw error;
  }
}

/**
 * Params hold customers' secrets, and the operator's directory may be readable by others. SQLite
 * creates its log and index with the mode of the file.
 */
function ownFile(dir: string, name: string): string {
  const path = join(dir, name);
  // An existing file is not opened: closing it would release this process's locks on it.
  if (existsSync(path)) chmodSync(path, 0o600);
  else closeSync(openSync(path, 'a', 0o600));
  return path;
}

/** Updates statistics for the next start. Failure, as on a full disk, does not stop the close. */
function optimize(db: Database): void {
  try {
    db.pragma('optimize');
  } catch (error) {
    if (!(error instanceof Sqlite.SqliteError)) throw error;
  }
}

/** Held until it is closed. Throws ConfigError when another process holds it. */
export function takeLock(dir: string): Database {
  const lock = new Sqlite(ownFile(dir, 'lock.db'), { timeout: 0 });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock.close();
    if (error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY')) {
      throw new ConfigError(`${ANOTHER_RUNS}: ${dir}`);
    }
    throw error;
  }
}
