/** Sessions under random operations: counters, jobs and slots agree with the rows all the time. */
import Sqlite, { type Database } from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { sized } from '../../support/whole.ts';
import { type Bench, ENGINES, HOLDER, LEASE_MS, openBench, T0 } from '../store/engines.ts';

const test = suite('core/sessions/model');

const LIMIT = 4;
const STEPS = 400;

/** The same numbers for the same seed: a failure can be seen again. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

type World = {
  bench: Bench;
  projects: string[];
  random(below: number): number;
  at: number;
  instance: string;
  /** All that ever were, ended ones too. */
  sessions: { id: string; projectId: string }[];
  leases: string[];
};

const OPERATIONS: ((world: World) => Promise<unknown>)[] = [
  createOne,
  createOne,
  lease,
  lease,
  renew,
  start,
  start,
  complete,
  release,
  putBack,
  sweep,
  wait,
  register,
];

function pick<T>(world: World, all: readonly T[]): T | undefined {
  return all[world.random(all.length)];
}

async function createOne(world: World): Promise<void> {
  const { bench, at, sessions } = world;
  const projectId = must(pick(world, world.projects), 'project');
  const settings = { contextId: null, extensionId: null, keepAlive: false, params: '{}' };
  const session = { id: newId(), projectId, region: 'us-west-2', ...settings };
  try {
    await bench.store.createSession({
      ...session,
      userMetadata: null,
      timeoutMs: 60_000,
      at,
      waitUntil: at + 60_000,
    });
    sessions.push({ id: session.id, projectId });
  } catch (error) {
    assert.ok(error instanceof Fault && error.reason === 'CONCURRENCY_LIMIT');
  }
}

async function lease(world: World): Promise<void> {
  const { bench, at, instance, leases } = world;
  const leaseIds = [newId(), newId()];
  const wanted = { ...HOLDER, instanceId: instance, kind: 'session' as const, leaseIds };
  for (const { leaseId } of await bench.store.leaseWork({ ...wanted, leaseMs: LEASE_MS, at })) {
    leases.push(leaseId);
  }
}

async function renew({ bench, at, instance, leases }: World): Promise<void> {
  const wanted = { ...HOLDER, instanceId: instance, leaseIds: leases.slice(-8), at };
  await bench.store.renewLeases({ ...wanted, leaseMs: LEASE_MS });
}

async function start(world: World): Promise<void> {
  const { bench, at } = world;
  const leaseId = pick(world, world.leases.slice(-8));
  if (leaseId) await bench.store.startSession({ leaseId, startedAt: at - 5, at });
}

async function complete(world: World): Promise<void> {
  const leaseId = pick(world, world.leases.slice(-8));
  const end = { status: 'COMPLETED', reason: '', proxyBytes: 0, at: world.at } as const;
  if (leaseId) await world.bench.store.completeSession({ leaseId, ...end });
}

async function release(world: World): Promise<void> {
  const session = pick(world, world.sessions.slice(-12));
  if (session) await world.bench.store.releaseSession({ ...session, at: world.at });
}

async function putBack(world: World): Promise<void> {
  await world.bench.store.putBackWork({ leaseIds: world.leases.slice(-1) });
}

async function sweep({ bench, at }: World): Promise<void> {
  await bench.store.sweepWork({ at, max: 100 });
}

async function wait(world: World): Promise<void> {
  world.at += world.random(LEASE_MS);
}

async function register(world: World): Promise<void> {
  if (world.random(6) > 0) return; // seldom, or nothing would ever run
  world.instance = newId();
  const runner = { ...HOLDER, instanceId: world.instance, at: world.at };
  await world.bench.store.registerRunner(runner);
}

/** The invariants between any two operations. */
function checkWorld(db: Database, step: string): void {
  const rows = (sql: string) => db.prepare<[], Record<string, unknown>>(sql).all();
  const uncounted = rows(`
    SELECT project_id FROM queues WHERE kind = 'session' AND (
      ready <> (SELECT COUNT(*) FROM jobs
        WHERE jobs.project_id = queues.project_id AND kind = 'session' AND state = 'ready')
      OR running <> (SELECT COUNT(*) FROM jobs
        WHERE jobs.project_id = queues.project_id AND kind = 'session' AND state = 'running'))`);
  assert.equal(uncounted, [], `${step}: counters`);
  const orphans = rows(`
    SELECT sessions.id FROM sessions FULL JOIN jobs ON jobs.id = sessions.id
    WHERE (sessions.status IN ('PENDING', 'RUNNING')) <> (jobs.id IS NOT NULL)`);
  assert.equal(orphans, [], `${step}: a job each for those that live, and for no other`);
  const over = rows(`
    SELECT project_id FROM jobs WHERE released_at IS NULL
    GROUP BY project_id HAVING COUNT(*) > ${LIMIT}`);
  assert.equal(over, [], `${step}: limit`);
  const odd = rows(`
    SELECT id FROM sessions
    WHERE (ended_at IS NULL) <> (status IN ('PENDING', 'RUNNING'))
      OR (status = 'PENDING' AND started_at IS NOT NULL)
      OR (status IN ('RUNNING', 'TIMED_OUT') AND started_at IS NULL)
      OR started_at < created_at`);
  assert.equal(odd, [], `${step}: times`);
}

/** Their walks come to nearly every status. */
for (const seed of sized([1], [1, 3, 4])) {
  test(`the state machine agrees with its model, seed ${seed}`, async () => {
    await using bench = await openBench(must(ENGINES[0], 'engine'));
    const projects = [await bench.project('one', LIMIT), await bench.project('two', LIMIT)];
    const world: World = {
      bench,
      projects,
      random: randomOf(seed),
      at: T0,
      instance: HOLDER.instanceId,
      sessions: [],
      leases: [],
    };
    const db = new Sqlite(`${bench.dir}/tabern.db`, { readonly: true });
    using opened = new DisposableStack();
    opened.defer(() => db.close());
    for (let step = 0; step < STEPS; step++) {
      const operation = must(pick(world, OPERATIONS), 'operation');
      await operation(world);
      checkWorld(db, `step ${step}, ${operation.name}`);
    }
    const ends = new Set(db.prepare('SELECT status FROM sessions').pluck().all());
    assert.ok(ends.size >= 4, `the walk reached ${[...ends]}`);
  });
}

test.run();
