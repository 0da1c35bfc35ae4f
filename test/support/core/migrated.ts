/**
 * Databases of SQLite that begin as copies of a migrated one, as those of PostgreSQL do
 * (engine.ts): the migrations take 90 of the 380 ms of CPU of a core's start.
 */
import { createHash, randomUUID } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openDatabase } from '../../../core/store/sqlite/engine/open.ts';
import { tempDirectory } from '../temp.ts';

const NAME = 'tabern.db';
const SCHEMA = fileURLToPath(new URL('../../../core/store/sqlite/schema/', import.meta.url));
const KEPT = fileURLToPath(
  new URL('../../../node_modules/.cache/test-databases/', import.meta.url),
);

let template: Promise<string> | undefined;

/** Puts a migrated database into a directory that has none. */
export async function lendDatabase(dir: string): Promise<void> {
  const path = join(dir, NAME);
  if (existsSync(path)) return;
  template ??= migrated();
  copyFileSync(await template, path);
  chmodSync(path, 0o600);
}

/** Of these migrations, and of no others. */
async function migrated(): Promise<string> {
  const hash = createHash('sha256');
  for (const name of readdirSync(SCHEMA).sort()) {
    hash.update(name).update(readFileSync(join(SCHEMA, name)));
  }
  const path = join(KEPT, `${hash.digest('hex')}.db`);
  if (existsSync(path)) return path;
  await using dir = tempDirectory();
  openDatabase({ dir: dir.path, durability: 'normal' }).close();
  mkdirSync(KEPT, { recursive: true });
  const own = `${path}.${randomUUID()}`;
  copyFileSync(join(dir.path, NAME), own);
  renameSync(own, path); // other test files do the same at the same time
  return path;
}
