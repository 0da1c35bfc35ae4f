/**
 * Reads the database of a data directory without a store, for `doctor`, backup, restore and
 * upgrades. They depend on this interface and not on the engine.
 */
import { join } from 'node:path';
import { DATABASE } from './database-file.ts';
import { inspect, isFromNewer } from './sqlite/engine/inspect.ts';
import { openForBackup } from './sqlite/engine/snapshot.ts';
import type { Inspected, OfflineDatabase } from './types/database.ts';

/** Read-only; a core may use the database. */
export function inspectDatabase(dir: string): Inspected {
  return inspect(join(dir, DATABASE));
}

/** Whether this version is too old for it; a core may use the database. */
export function isDatabaseNewer(dir: string): boolean {
  return isFromNewer(join(dir, DATABASE));
}

/** Throws ConfigError when a core runs on the directory. Nothing is migrated. */
export function openOffline(dir: string): OfflineDatabase {
  return openForBackup(dir);
}
