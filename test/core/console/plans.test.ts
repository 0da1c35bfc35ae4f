/**
 * Each statement of the console finds its rows by an index, in the order of the list, on a store
 * with many rows and their statistics: none reads a whole table, none sorts.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { auditOps } from '../../../core/store/sqlite/console/audit.ts';
import { consoleOps } from '../../../core/store/sqlite/console/console.ts';
import { operatorViewOps } from '../../../core/store/sqlite/console/operator.ts';
import { sized } from '../../support/whole.ts';
import { addFunctions, addInvocations, addSessions, openLists } from './projects.ts';

const test = suite('core/console/plans');

const ROWS = sized(50_000, 1_000_000);

/**
 * They sort the functions of one build, group the events of one invocation, group the rows that
 * a subquery with a limit selects, or sort the queues of all projects for the operator.
 */
const MAY_SORT = [
  /FROM versions JOIN functions .*ORDER BY functions\.name LIMIT 20/,
  /WHERE resource_id = \? GROUP BY events\.id LIMIT 100$/,
  /FROM queues JOIN projects .* ORDER BY kind, vtime LIMIT \?$/,
  /COUNT\(\*\) AS count .* LIMIT \d+\) .*GROUP BY 1, 2$/,
];

/** All statements that the operations prepare. */
function statementsOf(lists: ReturnType<typeof openLists>): string[] {
  const seen: string[] = [];
  const { db } = lists;
  const watching = {
    prepare(sql: string) {
      seen.push(sql.replace(/\s+/g, ' ').trim());
      return db.prepare(sql);
    },
    function: () => undefined,
    exec: () => undefined,
  };
  const tx = { db: watching as never, wake: () => undefined, crashPoint: () => undefined };
  consoleOps(tx);
  auditOps(tx);
  operatorViewOps(tx);
  return seen;
}

/** With any values: what is bound does not change a plan. */
function planOf({ rows }: ReturnType<typeof openLists>, sql: string): string {
  const names = [...sql.matchAll(/@(\w+)/g)].map(([, name = '']) => [name, 1] as const);
  const values = names.length > 0 ? [Object.fromEntries(names)] : (sql.match(/\?/g) ?? []);
  return rows(`EXPLAIN QUERY PLAN ${sql}`, ...values)
    .map(({ detail }) => String(detail))
    .join('\n');
}

test('no statement reads a table from its beginning, and none sorts a list', async () => {
  await using lists = openLists();
  const { projectId, db } = lists;
  addSessions(lists, projectId, ROWS);
  // a table of one row is read without its index
  for (let n = 0; n < 50; n++) await lists.addProject(`project-${n}`);
  const names = Array.from({ length: 200 }, (_, n) => `title-${n}`);
  const [of] = names.flatMap((name) => addFunctions(lists, projectId, [name]));
  assert.ok(of);
  addInvocations(lists, projectId, { of, from: 0, count: ROWS });
  db.exec('ANALYZE');
  const statements = statementsOf(lists);
  assert.ok(statements.length > 10);
  for (const sql of statements) {
    const plan = planOf(lists, sql);
    // Such a subquery is read whole, and so is the index of running work.
    assert.not.match(
      plan,
      /SCAN (?!\(subquery|newest|jobs USING COVERING INDEX jobs_by_runner)|AUTOMATIC/,
      `${sql}\n${plan}`,
    );
    if (MAY_SORT.some((few) => few.test(sql))) continue;
    assert.not.match(plan, /TEMP B-TREE/, `${sql}\n${plan}`);
    // A page examines what is between two places, and nothing below.
    if (!/LIMIT @limit/.test(sql) || /FROM session_(?:metadata|labels) AS found/.test(sql))
      continue;
    assert.match(plan, /\(created_at,id\)>\(\?,\?\) AND \(created_at,id\)<\(\?,\?\)/, sql);
  }
});

test.run();
