/**
 * Copies of a database, in use or not. SQLite's online backup runs in steps between the commits of
 * the same connection, and includes all of them.
 */
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import type { Snapshot } from '../../messages.ts';
import type { OfflineDatabase } from '../../types/database.ts';
import { takeLock } from './open.ts';

/** Pages of 4 KiB in one step: some 1 ms, during which no commit runs. Ours. */
const STEP_PAGES = 256;

/** Copies the database to that path, where no file may exist. */
export async function snapshotTo(
  db: Database,
  path: string,
  signal?: AbortSignal,
): Promise<Snapshot> {
  const progress = (): number => {
    signal?.throwIfAborted();
    return STEP_PAGES;
  };
  await db.backup(path, { progress });
  chmodSync(path, 0o600);
  using opened = new DisposableStack();
  const copy = opened.adopt(new Sqlite(path), (one) => one.close());
  copy.pragma('journal_mode = DELETE'); // a single file
  const blobs = copy
    .prepare<[], Snapshot['blobs'][number]>('SELECT id, size, sha256 FROM blobs ORDER BY id')
    .all();
  return { blobs };
}

/** Throws ConfigError when a core runs on the directory. Nothing is migrated. */
export function openForBackup(dir: string): OfflineDatabase {
  const lock = takeLock(dir);
  try {
    const db = new Sqlite(join(dir, 'tabern.db'), { fileMustExist: true, timeout: 5_000 });
    return {
      snapshot: (path, signal) => snapshotTo(db, path, signal),
      [Symbol.dispose]() {
        db.close();
        lock.close();
      },
    };
  } catch (error) {
    lock.close();
    throw error;
  }
}
