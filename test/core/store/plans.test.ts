/** Frequent statements of SQLite are planned once, and their plan is that for any values. */
import Sqlite from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { frequentQueries } from '../../../core/store/sqlite/engine/statements.ts';
import { allOps } from '../../../core/store/sqlite/ops.ts';
import { sized } from '../../support/whole.ts';
import { addFunctions, addInvocations, addSessions, openLists } from '../console/projects.ts';

const test = suite('core/store/plans');

const ROWS = sized(5_000, 200_000);

test('a frequent statement keeps its plan when the value of a parameter suggests another', () => {
  const db = new Sqlite(':memory:');
  // by the index the rows come in descending order, and by the table in ascending order
  db.exec(`
    CREATE TABLE rows (id INTEGER PRIMARY KEY, kind TEXT, place INTEGER, text TEXT) STRICT;
    WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 9999)
    INSERT INTO rows SELECT n, iif(n < 9000, 'often', 'rare' || n), -n, 'x' FROM numbers;
    CREATE INDEX by_kind ON rows (kind, place);
    ANALYZE;`);
  const sql = 'SELECT id, text FROM rows WHERE kind = ?';
  const [first] = frequentQueries({ db }).rows<[string], { id: number }>(sql)('often');
  assert.is(first?.id, 8_999);
  const [rare] = frequentQueries({ db }).rows<[string], { id: number }>(sql)('rare9500');
  assert.is(rare?.id, 9_500);
});

/** It reads the running jobs of all projects either way, when a function is deleted. */
const DIFFERS = /^SELECT COUNT\(\*\) FROM jobs CROSS JOIN invocations/;

test('the plan of a frequent statement on a store with statistics is that for values', async () => {
  await using lists = openLists();
  const { projectId, db } = lists;
  addSessions(lists, projectId, ROWS);
  for (let n = 0; n < 50; n++) await lists.addProject(`project-${n}`);
  const names = Array.from({ length: 200 }, (_, n) => `title-${n}`);
  const [of] = names.flatMap((name) => addFunctions(lists, projectId, [name]));
  assert.ok(of);
  addInvocations(lists, projectId, { of, from: 0, count: ROWS });
  db.exec('ANALYZE');
  const frequent = statementsOf(lists).filter((sql) => /\+[?@]/.test(sql));
  assert.ok(frequent.length > 100);
  for (const sql of frequent) {
    if (DIFFERS.test(sql)) continue;
    const anew = planOf(lists, sql.replace(/\+(?=[?@])/g, ''));
    assert.is(planOf(lists, sql), anew, sql);
  }
});

type Lists = ReturnType<typeof openLists>;

/** All statements that operations prepare. */
function statementsOf({ db }: Lists): string[] {
  const seen: string[] = [];
  const watching = {
    prepare(sql: string) {
      seen.push(sql.replace(/\s+/g, ' ').trim());
      return db.prepare(sql);
    },
    function: () => undefined,
    exec: () => undefined,
  };
  const ignore = () => undefined;
  allOps({ db: watching as never, wake: ignore, crashPoint: ignore, later: ignore });
  return seen;
}

function planOf({ rows }: Lists, sql: string): string {
  const names = [...sql.matchAll(/@(\w+)/g)].map(([, name = '']) => [name, 1] as const);
  const values = names.length > 0 ? [Object.fromEntries(names)] : (sql.match(/\?/g) ?? []);
  const steps = rows(`EXPLAIN QUERY PLAN ${sql}`, ...values);
  return steps.map(({ detail }) => String(detail)).join('\n');
}

test.run();
