/**
 * The database's file in a data directory, by name only: importing this module does not load the
 * engine. See offline.ts for its content.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Its name in the data directory, and in a backup. */
export const DATABASE = 'tabern.db';

/** As SQLite names damage, by code or by message. */
const DAMAGED = /SQLITE_(?:CORRUPT|NOTADB)|disk image is malformed|file is not a database/;

export function hasDatabase(dir: string): boolean {
  return existsSync(join(dir, DATABASE));
}

/** Whether the last process ended without closing the database: then its log exists. */
export function wasNotClosed(dir: string): boolean {
  return existsSync(join(dir, `${DATABASE}-wal`));
}

export function isDatabaseDamage(error: unknown): error is Error {
  return error instanceof Error && DAMAGED.test(error.message);
}

/** An error that `isDatabaseDamage` accepts, for the problem that a check found. */
export function damageError(problem: string | undefined): Error {
  return new Error(`SQLITE_CORRUPT ${problem}`);
}
