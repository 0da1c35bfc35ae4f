/**
 * Two cores, and four or eight, run random operations on one PostgreSQL at the same time.
 * Afterwards counters are those of the rows, no work was leased twice, no delivery was claimed
 * twice, a listener has read every event, and one core is the leader. A failure names its seed;
 * TABERN_TEST_SEED repeats it, TABERN_TEST_ROUNDS runs more.
 */
import postgres from 'postgres';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../../core/common/ids.ts';
import type { Store } from '../../../../core/store/types.ts';
import { must } from '../../../../proto/common/must.ts';
import { Fault } from '../../../../proto/rpc/errors.ts';
import { openOnPostgres, urlOf } from '../../../support/engine.ts';
import { until } from '../../../support/poll.ts';
import { hasPostgres } from '../../../support/postgres.ts';
import { sized } from '../../../support/whole.ts';
import { type Bench, LEASE_MS, newSession, openBench, T0 } from '../engines.ts';

/** Operations of a caller where there are two cores; of more cores, each has its part. */
const ROUNDS = Number(process.env['TABERN_TEST_ROUNDS'] ?? '150');
const SEED = Number(process.env['TABERN_TEST_SEED'] ?? Math.floor(Math.random() * 1e9));
/** Of the second test; the first has two. */
const CORES = sized(4, 8);
/** At once, on each core. */
const CALLERS = 6;
/** What an operation may answer under load. */
const EXPECTED = ['CONCURRENCY_LIMIT', 'QUEUE_FULL', 'LEASE_LOST'];

/** Numbers below 1 from a seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Held = { leaseId: string; id: string; kind: 'session' | 'invocation' };

/** What the operations of all callers know. */
type World = {
  projects: { id: string; fn: { functionId: string; versionId: string } }[];
  sessions: { id: string; projectId: string }[];
  invocations: { id: string; projectId: string }[];
  held: Held[];
  /** How often each piece of work was leased and not put back. */
  leased: Map<string, number>;
  claimed: Set<string>;
  doubles: string[];
};

const test = suite('core/store/postgres/interleavings');

if (hasPostgres()) {
  for (const count of [2, CORES]) {
    test(`${count} cores keep the invariants (seed ${SEED})`, async () => {
      const engine = { name: 'postgres', open: openOnPostgres };
      await using bench = await openBench(engine);
      await using opened = new AsyncDisposableStack();
      const cores = [bench.store];
      while (cores.length < count) {
        cores.push(opened.adopt(await openOnPostgres(bench.dir), (store) => store.close()));
      }
      const world = await worldOf(bench);
      const reading = await readEvents(must(cores.at(-1), 'a core'), world);
      const rounds = Math.ceil((2 * ROUNDS) / count);
      const callers = cores.flatMap((store, core) =>
        Array.from({ length: CALLERS }, (_, index) =>
          act({ store, core, world, random: randomOf(SEED + core * 100 + index) }, rounds),
        ),
      );
      const ends = await Promise.allSettled(callers);
      const heard = await reading.finish();
      for (const end of ends) if (end.status === 'rejected') throw end.reason;
      assert.equal(world.doubles, [], 'leased or claimed twice');
      await until(() => cores.filter((core) => core.isLeader()).length === 1);
      await invariants(await urlOf(bench.dir), heard);
      console.log(`${count} cores: ${describedIn(world)}, ${heard.length} events`);
    });
  }
}

/** That each kind of operation did something. */
function describedIn({ sessions, invocations, leased, claimed }: World): string {
  const counts = {
    sessions: sessions.length,
    invocations: invocations.length,
    leases: leased.size,
    deliveries: claimed.size,
  };
  for (const [name, count] of Object.entries(counts)) assert.ok(count > 0, name);
  return Object.entries(counts)
    .map(([name, count]) => `${count} ${name}`)
    .join(', ');
}

async function worldOf(bench: Bench): Promise<World> {
  const projects: World['projects'] = [];
  for (const name of ['one', 'two', 'three']) {
    const id = await bench.project(name, 6);
    projects.push({ id, fn: await bench.publish(id) });
    const webhook = { id: newId(), projectId: id, endpoint: `https://example.com/${name}` };
    const eventTypes = ['sessions.created', 'sessions.ended', 'functions.invocations.completed'];
    const more = { endpointKey: name, eventTypes, sealed: Buffer.from('s'), at: T0 };
    await bench.store.createWebhook({ ...webhook, ...more }, 100);
  }
  const lists = { sessions: [], invocations: [], held: [], doubles: [] };
  return { projects, ...lists, leased: new Map(), claimed: new Set() };
}

type Caller = { store: Store; core: number; world: World; random: () => number };

async function act(caller: Caller, rounds: number): Promise<void> {
  const choices = [
    create,
    accept,
    lease,
    renew,
    complete,
    cancel,
    putBack,
    deliver,
    create,
    accept,
  ];
  for (let round = 0; round < rounds; round += 1) {
    const choice = pick(choices, caller.random);
    try {
      await choice?.(caller);
    } catch (error) {
      if (!(error instanceof Fault) || !EXPECTED.includes(error.reason)) throw error;
    }
  }
}

function pick<Item>(items: readonly Item[], random: () => number): Item | undefined {
  return items[Math.floor(random() * items.length)];
}

/** Removes it, so that one caller alone goes on with it. */
function taken<Item>(items: Item[], random: () => number): Item | undefined {
  return items.splice(Math.floor(random() * items.length), 1)[0];
}

async function create({ store, world, random }: Caller): Promise<void> {
  const project = pick(world.projects, random);
  if (!project) return;
  const { id } = await store.createSession(newSession(project.id));
  world.sessions.push({ id, projectId: project.id });
}

async function accept({ store, world, random }: Caller): Promise<void> {
  const project = pick(world.projects, random);
  if (!project) return;
  const ids = { id: newId(), sessionId: newId(), projectId: project.id, ...project.fn };
  const session = { sessionParams: '{}', contextId: null, userMetadata: null };
  const rest = { params: '{}', region: 'us-west-2', timeoutMs: 900_000 };
  await store.acceptInvocation({
    ...ids,
    ...session,
    ...rest,
    waitUntil: T0 + 60_000,
    queueMax: 20,
    at: T0,
  });
  world.invocations.push({ id: ids.id, projectId: project.id });
}

const holderOf = (core: number) => ({ runnerId: `runner ${core}`, instanceId: 'first' });

async function lease({ store, core, world, random }: Caller): Promise<void> {
  await store.registerRunner({ ...holderOf(core), at: T0 });
  const kind: Held['kind'] = random() < 0.5 ? 'session' : 'invocation';
  const wanted = { ...holderOf(core), kind, leaseIds: [newId(), newId()] };
  for (const { id, leaseId } of await store.leaseWork({ ...wanted, leaseMs: LEASE_MS, at: T0 })) {
    const count = (world.leased.get(id) ?? 0) + 1;
    world.leased.set(id, count);
    if (count > 1) world.doubles.push(`${kind} ${id}`);
    world.held.push({ leaseId, id, kind });
  }
}

async function renew({ store, core, world, random }: Caller): Promise<void> {
  const leaseIds = [pick(world.held, random), pick(world.held, random)].flatMap(
    (held) => held?.leaseId ?? [],
  );
  await store.renewLeases({ ...holderOf(core), leaseIds, leaseMs: LEASE_MS, at: T0 });
}

async function complete({ store, world, random }: Caller): Promise<void> {
  const held = taken(world.held, random);
  if (!held) return;
  const { leaseId } = held;
  if (held.kind === 'session') {
    await store.startSession({ leaseId, startedAt: T0, at: T0 });
    const end = { status: 'COMPLETED', reason: 'over', proxyBytes: 1, at: T0 } as const;
    await store.completeSession({ leaseId, ...end });
  } else {
    const outcome = { kind: 'success', results: '1' } as const;
    await store.completeInvocation({ leaseId, outcome, sessionStartedAt: T0, at: T0 });
  }
}

async function cancel({ store, world, random }: Caller): Promise<void> {
  const session = pick(world.sessions, random);
  const invocation = pick(world.invocations, random);
  if (session && random() < 0.5) await store.releaseSession({ ...session, at: T0 });
  else if (invocation) await store.cancelInvocation({ ...invocation, at: T0 });
}

async function putBack({ store, world, random }: Caller): Promise<void> {
  const held = taken(world.held, random);
  if (!held) return;
  // renewed work stays leased, and ended work is not leased again
  world.leased.set(held.id, (world.leased.get(held.id) ?? 0) - 1);
  await store.putBackWork({ leaseIds: [held.leaseId] });
}

async function deliver({ store, core, world }: Caller): Promise<void> {
  const sender = { senderId: `gateway ${core}`, instanceId: '1' };
  const claim = { ...sender, max: 8, perProjectMax: 16, ratePerS: 50, signedAtS: 0, jitter: 1 };
  const at = T0 + 1_000_000 * (1 + world.claimed.size);
  const wanted = { ...claim, at, leaseUntil: at * 2 };
  const { claims } = await store.claimDeliveries(wanted);
  const outcome = { outcome: 'ok', status: 200, latencyMs: 1, error: '' } as const;
  const rest = { response: Buffer.alloc(0), retryAfterS: null, abortMessage: false, jitter: 1 };
  for (const { deliveryId } of claims) {
    const key = `delivery ${deliveryId}`;
    if (world.claimed.has(key)) world.doubles.push(key);
    world.claimed.add(key);
  }
  const ends = claims.map(({ deliveryId, claimSeq, attemptId }) => ({
    deliveryId,
    claimSeq,
    attemptId,
    ...outcome,
    ...rest,
  }));
  await store.reportAttempts({ ends, at, rule: { disableAfterMs: 1e12, silence: true } });
}

/** Reads the events of all projects by cursors, as clients do, until all operations have ended. */
async function readEvents(store: Store, world: World) {
  let isOver = false;
  const listen = async ({ id: projectId }: World['projects'][number]) => {
    return { projectId, first: await store.listen({ projectId, until: Number.MAX_SAFE_INTEGER }) };
  };
  const read = async ({ projectId, first }: Awaited<ReturnType<typeof listen>>) => {
    const ids: string[] = [];
    let after = first;
    for (;;) {
      const wasOver = isOver;
      const { events: page } = await store.eventsAfter({ projectId, after, limit: 7 });
      ids.push(...page.map(({ id }) => id));
      after = page.at(-1)?.seq ?? after;
      if (page.length === 0 && wasOver) return ids;
      if (page.length === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  };
  // before the first operation, so that all events are later
  const listeners = await Promise.all(world.projects.map(listen));
  const reading = Promise.all(listeners.map(read));
  return {
    async finish(): Promise<string[]> {
      isOver = true;
      return (await reading).flat();
    },
  };
}

async function invariants(url: string, heard: string[]): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    const wrong = await sql`
      SELECT kind, project_id, ready, running, actual_ready, actual_running FROM (
        SELECT queues.*, COUNT(*) FILTER (WHERE state = 'ready') AS actual_ready,
          COUNT(*) FILTER (WHERE state = 'running') AS actual_running
        FROM queues LEFT JOIN jobs USING (kind, project_id)
        GROUP BY queues.kind, queues.project_id) AS counted
      WHERE ready <> actual_ready OR running <> actual_running`;
    assert.equal([...wrong], [], 'counters of queues');
    const stray = await sql`
      SELECT jobs.id FROM jobs LEFT JOIN sessions USING (id) LEFT JOIN invocations USING (id)
      WHERE COALESCE(sessions.ended_at, invocations.ended_at) IS NOT NULL`;
    assert.equal([...stray], [], 'jobs of ended work');
    const over = await sql`
      SELECT project_id, COUNT(*) FROM jobs WHERE kind = 'session' AND released_at IS NULL
      GROUP BY 1 HAVING COUNT(*) > 6`;
    assert.equal([...over], [], 'sessions beyond a limit');
    const due = await sql`
      SELECT webhooks.id FROM webhooks
      WHERE next_due IS DISTINCT FROM (SELECT MIN(due) FROM deliveries
        WHERE webhook_id = webhooks.id AND state = 'pending')`;
    assert.equal([...due], [], 'due times of webhooks');
    const events = await sql<{ id: string }[]>`
      SELECT id FROM events WHERE seq > (SELECT MIN(seq) FROM events) - 1`;
    assert.equal(heard.toSorted(), events.map(({ id }) => id).toSorted(), 'events that were heard');
  } finally {
    await sql.end();
  }
}

test.run();
