/** The thread of check-process.ts: SQLite's quick_check of each table, then it ends. */
import { join } from 'node:path';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import Sqlite, { type Database } from 'better-sqlite3';
import { must } from '../../../../proto/common/must.ts';
import type { Checked } from '../../check.ts';

/** Further problems add no information. */
const PROBLEMS_MAX = 3;
/** Codes of damage; others, such as a lack of descriptors or memory, are failures of the check. */
const DAMAGED = /^SQLITE_(?:CORRUPT|NOTADB|IOERR)/;

if (isMainThread) throw new Error('check-thread.ts runs in a thread of its own only');

const dir = must(workerData as string | undefined, 'data directory');
const report = (result: Checked) => parentPort?.postMessage(result);
try {
  report({ problems: problemsIn(dir) });
} catch (error) {
  report({ failed: String(error) });
}

function problemsIn(dir: string): string[] {
  using opened = new DisposableStack();
  try {
    const path = join(dir, 'tabern.db');
    const db = opened.adopt(new Sqlite(path, { readonly: true, timeout: 5_000 }), (one) =>
      one.close(),
    );
    return tablesOf(db)
      .flatMap((table) => checkOf(db, table))
      .slice(0, PROBLEMS_MAX);
  } catch (error) {
    if (!(error instanceof Sqlite.SqliteError) || !DAMAGED.test(error.code)) throw error;
    return [error.message];
  }
}

function tablesOf(db: Database): string[] {
  return db
    .prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
    .pluck()
    .all();
}

function checkOf(db: Database, table: string): string[] {
  const rows = db.pragma(`quick_check('${table}')`) as { quick_check: string }[];
  return rows.map((row) => row.quick_check).filter((text) => text !== 'ok');
}
