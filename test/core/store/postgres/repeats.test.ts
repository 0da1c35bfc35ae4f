/**
 * Operations that PostgreSQL ends for what others do: a lock that is not free in time, and a
 * serialization failure, both of a real server. They are repeated; after the last repeat the answer
 * is 503 with Retry-After. Deadlocks: deadlocks.test.ts.
 */
import postgres from 'postgres';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Pool } from '../../../../core/store/postgres/engine/pool.ts';
import {
  type Operation,
  openRunner,
  type Runner,
} from '../../../../core/store/postgres/engine/transaction.ts';
import { urlOf } from '../../../support/engine.ts';
import { faultOf } from '../../../support/fault.ts';
import { hasPostgres } from '../../../support/postgres.ts';

const test = suite('core/store/postgres/repeats');
/** The first try and its repeats. */
const TRIES = 4;
/** Soon: the tests' only wait. */
const LOCK_TIMEOUT = 'lock_timeout = 20';

/** A counter, and operations on it whose transactions begin like that. */
async function open(name: string, beginning: string) {
  const url = await urlOf(name);
  const sql = postgres(url, { max: 2, onnotice: () => {} });
  await sql`CREATE TABLE counter (value INTEGER)`;
  await sql`INSERT INTO counter VALUES (0)`;
  const pool = new Pool({ url, isPooled: false, name: 'tabern test', settings: [LOCK_TIMEOUT] });
  const runner = openRunner({
    pool,
    beginOf: () => beginning,
    needsTransactions: false,
    lock: () => {},
    onCommit: () => {},
    crashPoint: () => {},
    onSync: () => {},
    onNotice: () => {},
  });
  return {
    sql,
    runner,
    value: async () => (await sql`SELECT value FROM counter`)[0]?.['value'] as number,
    async [Symbol.asyncDispose]() {
      await pool.close();
      await sql.end({ timeout: 1 }); // also of a connection that a failed test has reserved
    },
  };
}

type Counter = Awaited<ReturnType<typeof open>>;

/** Reads the counter, does `meanwhile`, and adds one to it. Counts its tries. */
function adding({ tx }: Runner, meanwhile: (tries: number) => Promise<unknown> = async () => {}) {
  let tries = 0;
  function* start() {
    tries += 1;
    yield tx.send('SELECT value FROM counter', []);
    yield meanwhile(tries);
    yield tx.send('UPDATE counter SET value = value + 1', []);
    return 'added';
  }
  const operation: Operation = {
    start: start as unknown as Operation['start'],
    isTransaction: true,
  };
  return { operation, tries: () => tries };
}

async function expectRefused(refused: Promise<unknown>, cause: RegExp): Promise<void> {
  const fault = await faultOf(refused);
  assert.is(fault.message, 'The database is not available. Try again.');
  const { http, retryAfterS = 0 } = fault.row;
  assert.is(http, 503);
  assert.ok(retryAfterS > 0, 'Retry-After');
  assert.match((fault.cause as Error).message, cause);
}

/** The transaction that the test began holds the row. */
async function held({ sql }: Counter) {
  const own = await sql.reserve();
  await own`BEGIN`;
  await own`SELECT 1 FROM counter FOR UPDATE`;
  return {
    async free(): Promise<void> {
      await own`COMMIT`;
      own.release();
    },
  };
}

if (hasPostgres()) {
  test('a lock that is not free is waited for again, three times', async () => {
    await using counter = await open('a lock', 'BEGIN');
    const lock = await held(counter);
    const refused = adding(counter.runner);
    const refusal = counter.runner.run('add', refused.operation, []);
    await expectRefused(refusal, /^55P03 /);
    assert.is(refused.tries(), TRIES);
    const { operation, tries } = adding(counter.runner, async (count) => {
      if (count === TRIES) await lock.free();
    });
    assert.is(await counter.runner.run('add', operation, []), 'added');
    assert.is(tries(), TRIES);
    assert.is(await counter.value(), 1);
  });

  test('a transaction that another one overtakes is repeated three times', async () => {
    await using counter = await open('serialization', 'BEGIN ISOLATION LEVEL REPEATABLE READ');
    const overtake = () => counter.sql`UPDATE counter SET value = value + 10`;
    const refused = adding(counter.runner, async () => await overtake());
    const refusal = counter.runner.run('add', refused.operation, []);
    await expectRefused(refusal, /^40001 /);
    assert.is(refused.tries(), TRIES);
    const { operation, tries } = adding(counter.runner, async (count) => {
      if (count < TRIES) await overtake();
    });
    assert.is(await counter.runner.run('add', operation, []), 'added');
    assert.is(tries(), TRIES);
    assert.is(await counter.value(), 10 * (TRIES + TRIES - 1) + 1);
  });
}

test.run();
