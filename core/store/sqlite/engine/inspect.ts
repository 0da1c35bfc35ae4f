/** Reads a database without a change: its problems, its blobs, its check value, its last time. */
import Sqlite, { type Database } from 'better-sqlite3';
import type { Inspected } from '../../types/database.ts';
import { isNewer } from './migrate.ts';

/** In rows of integrity_check. Further rows add no information. */
const PROBLEMS_MAX = 10;

/** A core may use the database. */
export function inspect(path: string): Inspected {
  using opened = new DisposableStack();
  const problems: string[] = [];
  const nothing = { problems, blobs: [], masterKeyCheck: null, lastTime: 0 };
  try {
    const db = opened.adopt(new Sqlite(path, { readonly: true, timeout: 5_000 }), (one) =>
      one.close(),
    );
    problems.push(...damageOf(db));
    if (problems.length > 0) return nothing;
    if (isNewer(db)) problems.push('the database was written by a newer tabern');
    const blobs = db.prepare<[], Inspected['blobs'][number]>('SELECT id, size, sha256 FROM blobs');
    const lastTime = db.prepare<[], number>('SELECT MAX(at) FROM heartbeat').pluck().get() ?? 0;
    return { problems, blobs: blobs.all(), masterKeyCheck: checkOf(db), lastTime };
  } catch (error) {
    if (!(error instanceof Sqlite.SqliteError)) throw error;
    problems.push(`the database cannot be read: ${error.message}`);
    return nothing;
  }
}

/** Whether this version is too old for it. A core may use the database. */
export function isFromNewer(path: string): boolean {
  using opened = new DisposableStack();
  const db = opened.adopt(new Sqlite(path, { readonly: true, timeout: 5_000 }), (one) =>
    one.close(),
  );
  return isNewer(db);
}

function damageOf(db: Database): string[] {
  const rows = db.pragma(`integrity_check(${PROBLEMS_MAX})`, { simple: false }) as {
    integrity_check: string;
  }[];
  const damage = rows.map((row) => row.integrity_check).filter((text) => text !== 'ok');
  const strays = db.pragma('foreign_key_check') as { table: string }[];
  return [
    ...damage.map((text) => `the database is damaged: ${text}`),
    ...(strays[0] ? [`the database is damaged: rows of ${strays[0].table} lead nowhere`] : []),
  ];
}

function checkOf(db: Database): Uint8Array | null {
  return db.prepare<[], Uint8Array>('SELECT sealed FROM master_key_check').pluck().get() ?? null;
}
