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
import { DATABASE, hasDatabase } from '../../../core/store/database-file.ts';
import { openDatabase } from '../../../core/store/sqlite/engine/open.ts';
import { tempDirectory } from '../temp.ts';

const SQLITE = fileURLToPath(new URL('../../../core/store/sqlite/', import.meta.url));
const KEPT = fileURLToPath(
  new URL('../../../node_modules/.cache/test-databases/', import.meta.url),
);

let template: Promise<string> | undefined;

/** Puts a migrated database into a directory that has none. */
export async function lendDatabase(dir: string): Promise<void> {
  if (hasDatabase(dir)) return;
  const path = join(dir, DATABASE);
  template ??= migrated();
  copyFileSync(await template, path);
  chmodSync(path, 0o600);
}

/** By these migrations, this code and this SQLite, and by no others. */
async function migrated(): Promise<string> {
  const hash = createHash('sha256');
  const migrations = readdirSync(join(SQLITE, 'schema')).map((name) => join('schema', name));
  for (const name of [...migrations.sort(), 'engine/open.ts', 'engine/migrate.ts']) {
    hash.update(name).update(readFileSync(join(SQLITE, name)));
  }
  hash.update(readFileSync(new URL(import.meta.resolve('better-sqlite3/package.json'))));
  const path = join(KEPT, `${hash.digest('hex')}.db`);
  if (existsSync(path)) return path;
  await using dir = tempDirectory();
  openDatabase({ dir: dir.path, durability: 'normal' }).close();
  mkdirSync(KEPT, { recursive: true });
  const own = `${path}.${randomUUID()}`;
  copyFileSync(join(dir.path, DATABASE), own);
  chmodSync(own, 0o644); // for other users of this checkout
  renameSync(own, path); // other test files do the same at the same time
  return path;
}
