/**
 * An operation that PostgreSQL ends for a deadlock is repeated; after its last repeat the caller is
 * told to try again. The deadlocks are real: another session has locked the same rows in the
 * opposite order.
 */
import postgres from 'postgres';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openOnPostgres, urlOf } from '../../../support/engine.ts';
import { faultOf } from '../../../support/fault.ts';
import { until } from '../../../support/poll.ts';
import { hasPostgres } from '../../../support/postgres.ts';
import { type Bench, HOLDER, LEASE_MS, newSession, openBench, T0 } from '../engines.ts';

const test = suite('core/store/postgres/deadlocks');
/** The first try and its repeats. */
const TRIES = 4;
const LATER = T0 + 1_000;

/** Of two that wait for each other, core's connections are ended, soon: the test's only wait. */
const ENGINE = {
  name: 'postgres',
  async open(dir: string) {
    const url = await urlOf(dir);
    const sql = connect(url);
    const name = sql(new URL(url).pathname.slice(1));
    await sql`ALTER DATABASE ${name} SET deadlock_timeout = '20ms'`;
    await sql.end();
    return openOnPostgres(dir);
  },
};

const connect = (url: string) => postgres(url, { max: 3, onnotice: () => {} });

/** A session of the test, in a transaction of its own. */
async function sessionOf(sql: postgres.Sql) {
  const session = await sql.reserve();
  await session`SET deadlock_timeout = '10min'`;
  return {
    session,
    lock: async (leaseId: string) => {
      await session`SELECT 1 FROM jobs WHERE lease_id = ${leaseId} FOR UPDATE`;
    },
  };
}

/** Three leases, which a renewal locks in their order, and sessions that lock them otherwise. */
async function openScene(bench: Bench) {
  const projectId = await bench.project('one', 10);
  for (let n = 0; n < 3; n += 1) await bench.store.createSession(newSession(projectId));
  const leaseIds = (await bench.lease('session', 3)).map(({ leaseId }) => leaseId).sort();
  const [first = '', second = '', third = ''] = leaseIds;
  const sql = connect(await urlOf(bench.dir));
  const [gate, other] = [await sessionOf(sql), await sessionOf(sql)];
  const waiting = async (count: number) => {
    const [row] = await sql`
      SELECT COUNT(*)::INTEGER AS n FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    return row?.['n'] === count;
  };
  await other.session`BEGIN`;
  await other.lock(third);
  return {
    other: other.session,
    renew: () => bench.store.renewLeases({ ...HOLDER, leaseIds, leaseMs: LEASE_MS, at: LATER }),
    renewed: async () => {
      const rows = await sql`SELECT 1 FROM jobs WHERE lease_until = ${LATER + LEASE_MS}`;
      return rows.length;
    },
    /** Stops the renewal behind its first lease. */
    async closeGate() {
      await gate.session`BEGIN`;
      await gate.lock(second);
    },
    /** The renewal has the first lease and needs the third, the other session vice versa. */
    async meet() {
      await until(() => waiting(1));
      await other.session`SAVEPOINT before`;
      const locked = other.lock(first);
      await until(() => waiting(2));
      await gate.session`COMMIT`;
      await locked; // the renewal was ended: the third lease is the other session's still
    },
    async [Symbol.asyncDispose]() {
      for (const { session } of [gate, other]) session.release();
      await sql.end({ timeout: 1 });
    },
  };
}

/** A connection reports its deadlocks when it ends. */
async function deadlocksAre(count: number, dir: string): Promise<void> {
  const sql = connect(await urlOf(dir));
  await using _ = { [Symbol.asyncDispose]: () => sql.end() };
  await until(async () => {
    const [row] = await sql`
      SELECT deadlocks::INTEGER AS n FROM pg_stat_database WHERE datname = current_database()`;
    return row?.['n'] === count;
  });
}

if (hasPostgres()) {
  test('an operation that a deadlock ended succeeds when it is repeated', async () => {
    let dir = '';
    {
      await using bench = await openBench(ENGINE);
      dir = bench.dir;
      await using scene = await openScene(bench);
      await scene.closeGate();
      const renewing = Promise.allSettled([scene.renew()]);
      await scene.meet();
      assert.is(await scene.renewed(), 0);
      await scene.other`COMMIT`;
      const [renewal] = await renewing;
      assert.is(renewal.status, 'fulfilled');
      assert.is(await scene.renewed(), 3);
    }
    await deadlocksAre(1, dir);
  });

  test('an operation whose repeats meet deadlocks is refused, and changes nothing', async () => {
    let dir = '';
    {
      await using bench = await openBench(ENGINE);
      dir = bench.dir;
      await using scene = await openScene(bench);
      await scene.closeGate();
      const refused = faultOf(scene.renew());
      for (let tries = 1; tries <= TRIES; tries += 1) {
        await scene.meet();
        if (tries < TRIES) await scene.closeGate();
        await scene.other`ROLLBACK TO SAVEPOINT before`;
      }
      const { reason, message, cause } = await refused;
      assert.is(reason, 'CORE_UNAVAILABLE');
      assert.is(message, 'The database is not available. Try again.');
      assert.is((cause as Error).message, '40P01 deadlock detected');
      assert.is((cause as { detail?: string }).detail, undefined, 'without values of rows');
      await scene.other`COMMIT`;
      assert.is(await scene.renewed(), 0);
      await scene.renew();
      assert.is(await scene.renewed(), 3);
    }
    await deadlocksAre(TRIES, dir);
  });
}

test.run();
