/** A move of a SQLite database to PostgreSQL: each row arrives as it is, or nothing does. */
import postgres from 'postgres';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { moveDatabase } from '../../../../core/store/move/move.ts';
import { Connection } from '../../../../core/store/postgres/engine/connection.ts';
import { ConfigError } from '../../../../proto/common/env.ts';
import { openWorker, SESSIONS } from '../../../bench/support/store-seconds.ts';
import { openOnPostgres, urlOf } from '../../../support/engine.ts';
import { hasPostgres } from '../../../support/postgres.ts';
import { tempDirectory } from '../../../support/temp.ts';
import { type Bench, ENGINES, openBench, T0 } from '../engines.ts';

const test = suite('core/store/postgres/move');
const sqlite = ENGINES.filter(({ name }) => name === 'sqlite');

/** Some rows of most kinds: published, run, logged, delivered. */
async function fill(bench: Bench) {
  const projectId = await bench.project('moved');
  const fn = await bench.publish(projectId, 'title', 3);
  const deliver = await bench.listen(projectId);
  const { id } = await bench.accept(projectId, fn);
  const [work] = await bench.lease('invocation');
  const leaseId = work?.leaseId ?? '';
  const lines = [{ message: 'a\0b', at: T0 + 0.25, level: 'log' }];
  const limit = { maxBytes: 1_000, linesMax: 10, marker: '' };
  await bench.store.appendLogs({ leaseId, first: 0, lines, ...limit });
  const outcome = { kind: 'success', results: '"\\u0000é"' } as const;
  await bench.store.completeInvocation({ leaseId, outcome, sessionStartedAt: T0, at: T0 });
  await deliver();
  await bench.accept(projectId, fn);
  return { projectId, id };
}

/** In bytes: the largest chunk of a log, and what a move may have in memory of one answer. */
const [CHUNK_BYTES, ANSWER_MAX_BYTES] = [1 << 20, 8 << 20];

/** The chunks in answers of PostgreSQL, from now on. */
function watchAnswers() {
  const { command } = Connection.prototype;
  const seen = {
    bytes: 0,
    largest: 0,
    [Symbol.dispose]() {
      Connection.prototype.command = command;
    },
  };
  Connection.prototype.command = async function (...args) {
    const rows = await command.apply(this, args);
    const bytes = rows.reduce((sum, { entries }) => {
      return sum + (entries instanceof Uint8Array ? entries.length : 0);
    }, 0);
    seen.bytes += bytes;
    seen.largest = Math.max(seen.largest, bytes);
    return rows;
  };
  return seen;
}

for (const engine of hasPostgres() ? sqlite : []) {
  const options = () => ({ signal: new AbortController().signal, moved: () => {} });

  test('a moved database answers as before, and goes on', async () => {
    await using bench = await openBench(engine);
    const { projectId, id } = await fill(bench);
    const read = async ({ store }: Pick<Bench, 'store'>) => [
      await store.getInvocation({ id, projectId }),
      await store.listFunctions({ projectId, limit: 10, offset: 0 }),
      await store.listSessions({ projectId, status: undefined, max: 10 }),
      (await store.eventsAfter({ projectId, after: 0, limit: 10 })).events.map(
        ({ body, ...event }) => {
          return { ...event, body: Buffer.from(body).toString() };
        },
      ),
    ];
    const before = await read(bench);
    await bench.store.close();
    await using target = tempDirectory();
    const url = await urlOf(target.path);
    const { tables } = await moveDatabase({ dir: bench.dir, url }, options());
    assert.ok(tables.find(({ name, rows }) => name === 'invocations' && rows === 2));
    const store = await openOnPostgres(target.path);
    try {
      assert.equal(await read({ store }), before);
      const [line] = await store.listLogs(id);
      assert.is(line?.message, 'a\ufffdb', 'PostgreSQL cannot store U+0000');
      const listener = { projectId, until: T0 * 2 };
      const last = Math.max(...(before[3] as { seq: number }[]).map(({ seq }) => seq));
      assert.ok((await store.listen(listener)) >= last);
      const taken = await store.leaseWork({
        runnerId: 'runner',
        instanceId: 'first',
        kind: 'invocation',
        leaseIds: ['0'],
        leaseMs: 1_000,
        at: T0,
      });
      assert.is(taken.length, 1, 'what waited is leased');
    } finally {
      await store.close();
    }
  });

  test('large rows are read back some at a time', async () => {
    await using bench = await openBench(engine);
    const worker = await openWorker(bench);
    const entries = Buffer.alloc(CHUNK_BYTES, 7);
    const limits = { maxBytes: 2 ** 40, within: { kinds: [], maxBytes: 2 ** 40 }, endedAfter: T0 };
    for (const leaseId of worker.leaseIds) {
      const chunk = { leaseId, number: 0, entries, count: 1, size: CHUNK_BYTES };
      await bench.store.appendSessionLog({ ...chunk, ...limits, at: T0 });
    }
    await bench.store.close();
    await using target = tempDirectory();
    using answers = watchAnswers();
    await moveDatabase({ dir: bench.dir, url: await urlOf(target.path) }, options());
    assert.is(answers.bytes, SESSIONS * CHUNK_BYTES, 'all are compared');
    assert.ok(answers.largest <= ANSWER_MAX_BYTES, String(answers.largest));
  });

  test('a database with data, and a directory in use, are refused', async () => {
    await using bench = await openBench(engine);
    await using target = tempDirectory();
    const url = await urlOf(target.path);
    const refused = async (words: RegExp) => {
      const error = await moveDatabase({ dir: bench.dir, url }, options()).catch((e) => e);
      assert.instance(error, ConfigError);
      assert.match(error.message, words);
    };
    await refused(/another/i);
    await bench.project('x');
    await bench.store.close();
    await moveDatabase({ dir: bench.dir, url }, options());
    await refused(/has data/);
  });

  test('a move that is interrupted leaves an empty database', async () => {
    await using bench = await openBench(engine);
    await fill(bench);
    await bench.store.close();
    await using target = tempDirectory();
    const url = await urlOf(target.path);
    const aborted = new AbortController();
    const moved = (rows: number) => void (rows > 0 && aborted.abort());
    const move = moveDatabase({ dir: bench.dir, url }, { signal: aborted.signal, moved });
    assert.is(
      await move.then(
        () => 'moved',
        ({ name }) => name,
      ),
      'AbortError',
    );
    const sql = postgres(url, { max: 1, onnotice: () => {} });
    assert.equal([...(await sql`SELECT id FROM projects`)], []);
    await sql.end();
  });
}

test.run();
