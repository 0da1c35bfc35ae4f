/**
 * Each statement of the console, of secrets and of certificates finds its rows by an index, in the
 * order of the list, on a store with many rows and their statistics: none reads a whole table, none
 * sorts.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  certificateOps,
  certificateStatements,
  certificatesOfSession,
} from '../../../core/store/sqlite/certificates.ts';
import { auditOps } from '../../../core/store/sqlite/console/audit.ts';
import { consoleOps } from '../../../core/store/sqlite/console/console.ts';
import { operatorViewOps } from '../../../core/store/sqlite/console/operator.ts';
import type { Tx } from '../../../core/store/sqlite/engine/transaction.ts';
import { extensionStatements, extensionsOfSession } from '../../../core/store/sqlite/files.ts';
import { secretStatements, secretViews } from '../../../core/store/sqlite/secrets.ts';
import { workItemStatements } from '../../../core/store/sqlite/work/work-items.ts';
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

/** All statements that operations prepare. */
function statementsOf(
  lists: ReturnType<typeof openLists>,
  operations: readonly ((tx: Tx) => unknown)[],
): string[] {
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
  const tx = {
    db: watching as never,
    wake: () => undefined,
    crashPoint: () => undefined,
    later: () => undefined,
  };
  for (const prepare of operations) prepare(tx);
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
  const statements = statementsOf(lists, [consoleOps, auditOps, operatorViewOps]);
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

/** They sort what is attached to one function: at most 50. */
const SORT_ATTACHED = /FROM function_secrets CROSS JOIN secrets/;

test('the statements of secrets, and the one of a lease, read no table whole', async () => {
  await using lists = openLists();
  const { projectId, db } = lists;
  addSessions(lists, projectId, 1_000);
  const projects = [projectId];
  for (let n = 0; n < 50; n++) projects.push(await lists.addProject(`project-${n}`));
  for (const [at, project] of projects.entries()) {
    const names = Array.from({ length: 20 }, (_, n) => `title-${at}-${n}`);
    const [of] = addFunctions(lists, project, names);
    if (at === 0 && of) addInvocations(lists, project, { of, from: 0, count: 1_000 });
    db.exec(`
      INSERT INTO secret_key_pairs (id, project_id, public_key, private_key, created_at)
      VALUES ('pair-${at}', '${project}', x'00', x'00', 0);
      WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 99)
      INSERT INTO secrets
        (id, project_id, secret_key, key_pair_id, sealed, created_at, updated_at)
      SELECT 'secret-${at}-' || printf('%03d', n), '${project}', 'S' || n, 'pair-${at}',
        zeroblob(48), 0, 0 FROM numbers;
      INSERT INTO function_secrets (function_id, secret_id)
      SELECT functions.id, secrets.id FROM functions
      JOIN secrets ON secrets.project_id = functions.project_id
      WHERE functions.project_id = '${project}' AND secrets.secret_key < 'S5'`);
  }
  db.exec('ANALYZE');
  const of = [secretViews, secretStatements, workItemStatements];
  const statements = statementsOf(lists, of).filter((sql) => /\bsecret|attached/.test(sql));
  assert.ok(statements.length > 10);
  for (const sql of statements) {
    if (sql.startsWith('INSERT')) continue;
    const plan = planOf(lists, sql);
    assert.not.match(plan, /SCAN|AUTOMATIC|ANY\(/, `${sql}\n${plan}`);
    // a page examines no row of another project
    if (/FROM secrets WHERE .* LIMIT @limit/.test(sql))
      assert.match(plan, /\(project_id=\? AND id<\?\)/, `${sql}\n${plan}`);
    if (!SORT_ATTACHED.test(sql)) assert.not.match(plan, /TEMP B-TREE/, `${sql}\n${plan}`);
  }
});

/** The ids in the params of one session, and the index of the few deleted rows. */
const SCANS = /SCAN (?!CONSTANT ROW|json_each VIRTUAL|\w+ USING (?:\w+ )?INDEX \w+_deleted)/;

test('the statements of certificates and extensions of sessions read no table whole', async () => {
  await using lists = openLists();
  const { projectId, db } = lists;
  addSessions(lists, projectId, 1_000);
  const projects = [projectId];
  for (let n = 0; n < 50; n++) projects.push(await lists.addProject(`project-${n}`));
  for (const [at, project] of projects.entries()) {
    db.exec(`
      WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 99)
      INSERT INTO certificates (id, project_id, pem, created_at, updated_at, deleted_at)
      SELECT 'certificate-${at}-' || printf('%03d', n), '${project}', 'pem', 0, 0,
        iif(n < 5, 1, NULL) FROM numbers`);
  }
  db.exec('ANALYZE');
  const ofCertificates = [certificateOps, certificateStatements, certificatesOfSession];
  const of = [...ofCertificates, extensionStatements, extensionsOfSession];
  const statements = statementsOf(lists, of).filter((sql) => !sql.startsWith('INSERT'));
  assert.ok(statements.length > 5);
  for (const sql of statements) {
    const plan = planOf(lists, sql);
    assert.not.match(plan, SCANS, `${sql}\n${plan}`);
    assert.not.match(plan, /AUTOMATIC|ANY\(/, `${sql}\n${plan}`);
    if (/LIMIT @max/.test(sql)) assert.not.match(plan, /TEMP B-TREE/, `${sql}\n${plan}`);
    // the params of open sessions are read once, and not again for each deleted row
    if (/^DELETE .* LIMIT/.test(sql)) assert.not.match(plan, /CORRELATED/, `${sql}\n${plan}`);
  }
});

test.run();
