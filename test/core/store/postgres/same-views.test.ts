/**
 * Both engines give the same answers: rows of SQLite are copied to PostgreSQL, and each read of the
 * console, of lists and of single objects is compared, as are the removals of what is old.
 */
import postgres from 'postgres';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Store } from '../../../../core/store/types.ts';
import { openOnPostgres, urlOf } from '../../../support/engine.ts';
import { hasPostgres } from '../../../support/postgres.ts';
import { tempDirectory } from '../../../support/temp.ts';
import { idOf, type Lists, openLists } from '../../console/projects.ts';
import { type Calls, readsOf } from './view-reads.ts';
import { CONTEXT, fill, LAST_MS } from './view-rows.ts';

const test = suite('core/store/postgres/same-views');
/** All rows, as they are. */
async function copy({ rows }: Lists, url: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await sql.unsafe('SET session_replication_role = replica');
    const tables = rows(`
      SELECT name FROM sqlite_schema
      WHERE type = 'table' AND name NOT IN ('migrations', 'sqlite_sequence')`);
    for (const { name } of tables) {
      const table = String(name);
      await sql.unsafe(`DELETE FROM ${table}`);
      const all = rows(`SELECT * FROM ${table}`);
      for (let from = 0; from < all.length; from += 1_000) {
        await sql`INSERT INTO ${sql(table)} ${sql(all.slice(from, from + 1_000) as never)}`;
      }
    }
    await sql.unsafe('ANALYZE');
  } finally {
    await sql.end();
  }
}

/** What removes, in an order in which each finds something. */
function removalsOf({ projectId }: Lists, { webhookIds }: { webhookIds: string[] }): Calls {
  const old = { before: LAST_MS, at: LAST_MS, max: 50 };
  const ended = { before: LAST_MS, beforeId: '~', after: '', max: 40 };
  return [
    ['skipBacklog', { webhookId: webhookIds[1], pendingMax: 1, max: 3, at: 5 }],
    ['purgeExtensions', 10],
    ['purgeCertificates', 10],
    ['purgeLabels', 10],
    ['deleteDownload', { id: 'download', projectId }],
    ['purgeRecordings', old],
    ['purgeSessionLogs', old],
    ['purgeLogs', { beforeId: '~', max: 1 }],
    ['purgeLogs', { beforeId: '~', max: 50 }],
    ['purgeFunctions', { max: 15 }],
    ['purgeFunctions', { max: 500 }],
    ['purgeInvocations', ended],
    ['purgeBuilds', ended],
    ['purgeSessions', ended],
    ['purgeEvents', { ...old, max: 7 }],
    ['purgeAudit', old],
    ['purgeUsage', { day: 30_000, max: 2 }],
    ['removeUnusedBlobs', { before: LAST_MS, max: 10 }],
    ['dropContextBlobs', [idOf('01940000', 4), 'none']],
    ['deleteContext', { id: CONTEXT, projectId, at: 9 }],
    ['projectStorage', projectId],
    ['listBlobs', { after: '', max: 50 }],
    [
      'listSecrets',
      { projectId, before: undefined, limit: 5, startAt: undefined, endAt: undefined },
    ],
  ];
}

async function answersOf(store: Store, calls: Calls): Promise<unknown[]> {
  const answers: unknown[] = [];
  for (const [name, ...args] of calls) {
    const operation = store[name] as (...args: unknown[]) => Promise<unknown>;
    answers.push(comparable(await operation(...args)));
  }
  return answers;
}

/** As JSON: a Buffer is a Uint8Array. */
function comparable(value: unknown): unknown {
  const text = JSON.stringify(value, (_, one) => (one === undefined ? null : one));
  return value === undefined ? undefined : (JSON.parse(text) as unknown);
}

if (hasPostgres()) {
  test('each read and each removal gives the same on both engines', async () => {
    await using dir = tempDirectory();
    await using lists = openLists();
    const known = await fill(lists);
    const store = await openOnPostgres(dir.path);
    try {
      await copy(lists, await urlOf(dir.path));
      for (const calls of [readsOf(lists, known), removalsOf(lists, known)]) {
        const [theirs, ours] = await Promise.all([
          answersOf(lists.store, calls),
          answersOf(store, calls),
        ]);
        for (const [at, call] of calls.entries()) {
          assert.equal(ours[at], theirs[at], JSON.stringify(call));
        }
      }
    } finally {
      await store.close();
    }
  });
}

test.run();
