/** Rows for retention, and references to them, are found by an index, without reading each row. */
import Sqlite from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { migrate } from '../../../core/store/sqlite/engine/migrate.ts';

const test = suite('core/maintenance/schema');

/** These rows are never removed, so SQLite never looks for references to them. */
const KEPT_FOR_EVER: readonly string[] = ['projects', 'functions', 'secret_key_pairs'];

type Key = { id: number; table: string; from: string };

test('references to removable rows are found by an index', () => {
  const db = new Sqlite(':memory:');
  migrate(db);
  const tables = db.prepare<[], string>(`SELECT name FROM sqlite_schema WHERE type = 'table'`);
  const slow: string[] = [];
  let count = 0;
  for (const name of tables.pluck().all()) {
    const keys = db.pragma(`foreign_key_list(${name})`) as Key[];
    for (const columns of Object.values(Object.groupBy(keys, ({ id }) => id))) {
      const [first] = columns ?? [];
      if (first === undefined || KEPT_FOR_EVER.includes(first.table)) continue;
      const found = columns?.map(({ from }) => `${from} = ''`).join(' AND ');
      const query = db.prepare<[], { detail: string }>(
        `EXPLAIN QUERY PLAN SELECT 1 FROM ${name} WHERE ${found}`,
      );
      count += 1;
      if (query.all().some(({ detail }) => detail.startsWith('SCAN')))
        slow.push(`${name}: ${found}`);
    }
  }
  assert.equal(slow, []);
  assert.ok(count > 5);
  db.close();
});

test.run();
