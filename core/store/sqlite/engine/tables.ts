/** All rows of a database, table by table, for a move to another engine. */
import type { Database } from 'better-sqlite3';
import { must } from '../../../../proto/common/must.ts';
import type { MovedTable } from '../../types/database.ts';
import { openDatabase } from './open.ts';

/** Migrated, and locked until it is disposed of. Throws ConfigError when a core uses it. */
export function openTables(dir: string): Disposable & { tables: MovedTable[] } {
  const { db, close } = openDatabase({ dir, durability: 'full' });
  return { tables: inOrder(db).map((name) => tableOf(db, name)), [Symbol.dispose]: close };
}

function tableOf(db: Database, name: string): MovedTable {
  const columns = db.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck();
  const names = columns.all(name);
  const list = names.map((column) => `"${column}"`).join(', ');
  return {
    name,
    columns: names,
    count: () =>
      must(db.prepare<[], number>(`SELECT COUNT(*) FROM "${name}"`).pluck().get(), 'sum'),
    rows: () => db.prepare<[], unknown[]>(`SELECT ${list} FROM "${name}"`).raw().iterate(),
  };
}

/** A table after those to which its rows refer. */
function inOrder(db: Database): string[] {
  const all = db
    .prepare<[], string>(
      `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
        AND name <> 'migrations' ORDER BY name`,
    )
    .pluck()
    .all();
  const referred = db
    .prepare<[string], string>('SELECT DISTINCT "table" FROM pragma_foreign_key_list(?)')
    .pluck();
  const ordered = new Set<string>();
  const add = (name: string): void => {
    if (ordered.has(name)) return;
    for (const other of referred.all(name)) if (other !== name) add(other);
    ordered.add(name);
  };
  for (const name of all) add(name);
  return [...ordered];
}
