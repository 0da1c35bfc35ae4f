/**
 * A report of a runner is one transaction, whatever it holds. So 25 sessions whose runner reports
 * every two seconds make 0.02 transactions a second each. The engines' own numbers count them.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { openWorker, report, SESSIONS, segments } from '../../bench/support/store-seconds.ts';
import { openOnPostgres, urlOf } from '../../support/engine.ts';
import { hasPostgres } from '../../support/postgres.ts';
import { type Bench, ENGINES, openBench, T0 } from './engines.ts';

const REPORTS = 8;

/** Returns how many transactions have written since the last call. */
type Count = () => Promise<number>;

/** SQLite begins its log anew after some thousand pages. */
async function commitsOf({ dir }: Bench): Promise<Count> {
  let last = commitsIn(dir);
  return async () => {
    const { log, count } = last;
    last = commitsIn(dir);
    return last.log === log ? last.count - count : last.count;
  };
}

/**
 * The last frame of a transaction has the size of the database, the others have 0. Frames of an
 * older log have other salts. Source: https://www.sqlite.org/fileformat2.html#walformat
 */
function commitsIn(dir: string): { log: string; count: number } {
  const bytes = readFileSync(join(dir, 'tabern.db-wal'));
  const salts = (at: number) => bytes.subarray(at, at + 8).toString('hex');
  const log = salts(16);
  const frame = 24 + bytes.readUInt32BE(8);
  let count = 0;
  for (let at = 32; at < bytes.length && salts(at + 8) === log; at += frame) {
    if (bytes.readUInt32BE(at + 4) > 0) count += 1;
  }
  return { log, count };
}

/** Each row names the transaction that wrote it: what a vacuum or a wake does has no rows. */
async function writersOf({ dir }: Bench): Promise<Count> {
  const ask = async (question: string) => {
    const sql = postgres(await urlOf(dir), { max: 1, onnotice: () => {} });
    await using _ = { [Symbol.asyncDispose]: () => sql.end() };
    return await sql.unsafe<{ value: string }[]>(question);
  };
  const next = async () => {
    const found = await ask('SELECT pg_snapshot_xmax(pg_current_snapshot())::TEXT AS value');
    return Number(found[0]?.value);
  };
  const tables = await ask(`
    SELECT table_name AS value FROM information_schema.tables
    WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'`);
  const all = tables.map(({ value }) => `SELECT xmin::TEXT FROM "${value}"`).join(' UNION ALL ');
  let first = await next();
  return async () => {
    const [found] = await ask(`
      SELECT COUNT(DISTINCT xmin) AS value FROM (${all}) AS rows WHERE xmin::BIGINT >= ${first}`);
    first = await next();
    return Number(found?.value);
  };
}

const sqlite = { engine: must(ENGINES[0], 'SQLite'), count: commitsOf };
const server = { engine: { name: 'postgres', open: openOnPostgres }, count: writersOf };
for (const { engine, count } of hasPostgres() ? [sqlite, server] : [sqlite]) {
  const test = suite(`core/store/report-transactions/${engine.name}`);

  test('reports with parts of all logs and recordings are a transaction each', async () => {
    await using bench = await openBench(engine);
    const worker = await openWorker(bench);
    const counted = await count(bench);
    for (let n = 0; n < REPORTS; n += 1) {
      const answer = await report(worker, segments(worker, n));
      assert.equal(answer.leaseIds, worker.leaseIds);
      for (const kept of [answer.chunks, answer.lines]) {
        assert.equal(kept, Array(SESSIONS).fill('kept'));
      }
      assert.equal(answer.recordings, Array(SESSIONS).fill('added'));
      assert.is(await counted(), 1);
    }
  });

  test('the same parts by calls are many, so the count can fail', async () => {
    await using bench = await openBench(engine);
    const { store, leaseIds } = await openWorker(bench);
    const counted = await count(bench);
    const limits = { maxBytes: 1e9, linesMax: 1e9, marker: '' };
    const lines = [{ message: 'a', at: T0, level: 'log' }];
    for (const leaseId of leaseIds) await store.appendLogs({ leaseId, first: 0, lines, ...limits });
    assert.is(await counted(), SESSIONS);
  });

  test.run();
}
