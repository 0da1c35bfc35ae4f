/**
 * How often each frequent operation waits for PostgreSQL: statements that are sent together are one
 * round trip. The answers of a round trip are held until all of its statements are answered, so the
 * count does not depend on the speed of either side. A driver that prepares a statement needs one
 * more, once for each connection.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../../core/common/ids.ts';
import { Connection, type Result } from '../../../../core/store/postgres/engine/connection.ts';
import { Pool } from '../../../../core/store/postgres/engine/pool.ts';
import { must } from '../../../../proto/common/must.ts';
import { openOnPostgres } from '../../../support/engine.ts';
import { hasPostgres } from '../../../support/postgres.ts';
import { type Bench, HOLDER, LEASE_MS, openBench, T0 } from '../engines.ts';

/** Of one operation. */
class Counter {
  roundTrips = 0;
  statements = 0;
  #round: { answers: Promise<Result>[]; over: Promise<void> } | undefined;

  async answer(sent: Promise<Result>): Promise<Result> {
    sent.catch(() => {}); // reported where it is awaited
    this.statements += 1;
    this.#round ??= this.#begin();
    const { answers, over } = this.#round;
    answers.push(sent);
    await over;
    return sent;
  }

  #begin() {
    this.roundTrips += 1;
    const answers: Promise<Result>[] = [];
    return { answers, over: this.#end(answers) };
  }

  async #end(answers: Promise<Result>[]): Promise<void> {
    await Promise.resolve(); // the first statement is added
    for (let count = 0; count < answers.length; ) {
      count = answers.length;
      await Promise.allSettled(answers);
    }
    this.#round = undefined;
  }
}

const test = suite('core/store/postgres/round-trips');
const counters = new WeakMap<Connection, Counter>();
let last = new Counter();

/** Counts on the connections of the pool, from the start of an operation on. */
function countAll(): void {
  const { acquire } = Pool.prototype;
  Pool.prototype.acquire = async function (projectId) {
    const connection = await acquire.call(this, projectId);
    last = new Counter();
    counters.set(connection, last);
    return connection;
  };
  for (const name of ['send', 'command'] as const) {
    const original = Connection.prototype[name] as (...args: unknown[]) => Promise<Result>;
    Connection.prototype[name] = function (this: Connection, ...args: unknown[]) {
      const sent = original.apply(this, args);
      return counters.get(this)?.answer(sent) ?? sent;
    };
  }
}

const session = (projectId: string) => ({
  id: newId(),
  projectId,
  region: 'us-west-2',
  contextId: null,
  extensionId: null,
  keepAlive: false,
  params: '{}',
  timeoutMs: undefined,
  at: T0,
  waitUntil: T0 + 60_000,
  userMetadata: null,
});

/** The round trips of each operation, by its name. */
function openCounts() {
  const counts: Record<string, number> = {};
  return {
    counts,
    async count<Value>(name: string, run: () => Promise<Value>): Promise<Value> {
      const value = await run();
      counts[name] = last.roundTrips;
      return value;
    },
  };
}

type Fixture = {
  bench: Bench;
  projectId: string;
  of: { functionId: string; versionId: string };
};

const HEARD = [
  ...['created', 'running', 'ended', 'recording.ready', 'handoff.expired'].map(
    (step) => `sessions.${step}`,
  ),
  ...['pending', 'running', 'completed'].map((step) => `functions.invocations.${step}`),
];

async function openFixture(bench: Bench, eventTypes: string[]): Promise<Fixture> {
  const projectId = await bench.project('one');
  const of = await bench.publish(projectId);
  if (eventTypes.length > 0) {
    const webhook = { id: newId(), projectId, endpoint: 'https://example.com/hook' };
    const more = { endpointKey: 'hook', eventTypes, sealed: Buffer.from('s'), at: T0 };
    await bench.store.createWebhook({ ...webhook, ...more }, 100);
  }
  return { bench, projectId, of };
}

const renewal = { ...HOLDER, leaseMs: LEASE_MS, at: T0 };
const chunk = { entries: Buffer.alloc(9), count: 1, size: 9 };
const within = { kinds: ['SESSION_LOG' as const], maxBytes: 1e9 };
const line = { message: 'a', at: 0, level: 'log' };

/** In the life of a session. `places`: of the runner. */
async function sessionCounts({ bench, projectId }: Fixture, places: number) {
  const { store } = bench;
  const { counts, count } = openCounts();
  const leaseId = newId();
  const late = { leaseId, endedAfter: T0 };
  const kind = 'session' as const;
  const wanted = { ...renewal, kind, leaseIds: [leaseId, newId()], places };
  await count('leaseWork without work', () => store.leaseWork(wanted));
  const created = await count('createSession', () => store.createSession(session(projectId)));
  await count('leaseWork', () => store.leaseWork(wanted));
  await count('startSession', () => store.startSession({ leaseId, startedAt: T0, at: T0 }));
  await count('renewLeases', () => store.renewLeases({ ...renewal, leaseIds: [leaseId] }));
  await count('appendSessionLog', () =>
    store.appendSessionLog({ ...chunk, ...late, number: 0, maxBytes: 1e9, within, at: T0 }),
  );
  await count('reportRunner', () =>
    store.reportRunner({
      ...renewal,
      leaseIds: [leaseId],
      chunks: [1, 2].map((number) => ({ ...chunk, number, leaseId })),
      lines: [{ leaseId, first: 0, lines: [line, line] }],
      chunksMaxBytes: 1e9,
      logQuota: within,
      lineLimits: { maxBytes: 1e6, linesMax: 100, marker: '' },
      recordings: [],
      recordingLimits: { endedAfter: 0, quota: within },
    }),
  );
  const { id: sessionId } = created;
  const help = { id: newId(), projectId, sessionId, instructions: 'help', keyId: '' };
  must(await store.createHandoff({ ...help, expiresAt: T0 + 1_000, at: T0 }, 10), 'a handoff');
  const end = { status: 'COMPLETED', reason: 'over', proxyBytes: 0, at: T0 } as const;
  await count('completeSession', () => store.completeSession({ leaseId, ...end }));
  return counts;
}

/** In the life of an invocation. */
async function invocationCounts({ bench, projectId, of }: Fixture) {
  const { store } = bench;
  const { counts, count } = openCounts();
  const leaseId = newId();
  await count('acceptInvocation', () => bench.accept(projectId, of));
  const wanted = { ...renewal, kind: 'invocation' as const, leaseIds: [leaseId] };
  await count('leaseWork', () => store.leaseWork(wanted));
  await count('renewLeases', () => store.renewLeases({ ...renewal, leaseIds: [leaseId] }));
  await count('renewLeases again', () => store.renewLeases({ ...renewal, leaseIds: [leaseId] }));
  const outcome = { kind: 'success', results: '1' } as const;
  await count('completeInvocation', () =>
    store.completeInvocation({ leaseId, outcome, sessionStartedAt: T0, at: T0 }),
  );
  return counts;
}

const DELIVERED = { outcome: 'ok', status: 204 } as const;
const FAILED = { outcome: 'http', status: 500 } as const;

/** Of the deliveries of some events. */
async function deliveryCounts({ bench, projectId }: Fixture) {
  const { store } = bench;
  const { counts, count } = openCounts();
  const limits = { max: 64, perProjectMax: 64, ratePerS: 50, jitter: 1, signedAtS: 0 };
  const at = T0 + 1_000;
  const sender = { senderId: 'sender', instanceId: newId() };
  const claim = { ...sender, ...limits, at, leaseUntil: at + 45_000 };
  await count('claimDeliveries without any', () => store.claimDeliveries(claim));
  for (let index = 0; index < 3; index += 1) await store.createSession(session(projectId));
  const { claims } = await count('claimDeliveries', () => store.claimDeliveries(claim));
  assert.is(claims.length, 3);
  const rest = { response: Buffer.alloc(0), retryAfterS: null, abortMessage: false, jitter: 1 };
  const ends = claims.map(({ deliveryId, claimSeq, attemptId }, index) => ({
    deliveryId,
    claimSeq,
    attemptId,
    latencyMs: 1,
    error: '',
    ...rest,
    ...(index === 0 ? FAILED : DELIVERED),
  }));
  const report = { ends, at, rule: { disableAfterMs: 1e12, silence: true } };
  await count('reportAttempts', () => store.reportAttempts(report));
  return counts;
}

/** Two round trips: what decides is read, then all is written and committed. */
const OF_SESSION = {
  'leaseWork without work': 2,
  createSession: 2,
  leaseWork: 2,
  startSession: 2,
  renewLeases: 2,
  appendSessionLog: 2,
  reportRunner: 2,
  completeSession: 2,
};
const OF_INVOCATION = {
  acceptInvocation: 2,
  leaseWork: 2,
  renewLeases: 2,
  'renewLeases again': 2,
  completeInvocation: 2,
};

if (hasPostgres()) {
  countAll();
  const engine = { name: 'postgres', open: openOnPostgres };

  test('work without a receiver of its events', async () => {
    await using bench = await openBench(engine);
    const fixture = await openFixture(bench, []);
    assert.equal(await sessionCounts(fixture, 0), OF_SESSION);
    assert.equal(await sessionCounts(fixture, 25), OF_SESSION);
    assert.equal(await invocationCounts(fixture), OF_INVOCATION);
  });

  test('work whose events a webhook receives', async () => {
    await using bench = await openBench(engine);
    const fixture = await openFixture(bench, HEARD);
    assert.equal(await sessionCounts(fixture, 0), OF_SESSION);
    assert.equal(await invocationCounts(fixture), OF_INVOCATION);
  });

  test('work whose events a client polls', async () => {
    await using bench = await openBench(engine);
    const fixture = await openFixture(bench, []);
    await bench.store.listen({ projectId: fixture.projectId, until: T0 + 60_000 });
    assert.equal(await sessionCounts(fixture, 0), OF_SESSION);
    assert.equal(await invocationCounts(fixture), OF_INVOCATION);
  });

  test('the last places of a runner, which are reserved', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const { counts, count } = openCounts();
    const tenants = [await bench.project('one'), await bench.project('two')];
    for (const projectId of tenants) {
      const id = newId();
      await store.addApiKey({ hash: Buffer.from(id), projectId, publicId: id, name: id, at: T0 });
    }
    const [one, two] = tenants as [string, string];
    const lease = () => {
      const wanted = { ...renewal, kind: 'session' as const, leaseIds: [newId()], places: 2 };
      return store.leaseWork(wanted);
    };
    for (const projectId of [one, one]) await store.createSession(session(projectId));
    await count('the first', lease);
    assert.equal(await count('to the project that holds it', lease), []);
    await store.createSession(session(two));
    const leased = await count('to the other one', lease);
    assert.equal(
      leased.map(({ projectId }) => projectId),
      [two],
    );
    const expected = { 'the first': 2, 'to the project that holds it': 2, 'to the other one': 2 };
    assert.equal(counts, expected);
  });

  test('a lease of several pieces takes one more for each further one', async () => {
    await using bench = await openBench(engine);
    const { counts, count } = openCounts();
    const projectId = await bench.project('one');
    for (let made = 0; made < 3; made += 1) await bench.store.createSession(session(projectId));
    const leased = await count('three', () => bench.offer('session', 4));
    assert.is(leased.length, 3);
    assert.equal(counts, { three: 4 });
  });

  test('a statement that fails beside the commit undoes its operation', async () => {
    await using bench = await openBench(engine);
    const { projectId } = await openFixture(bench, []);
    const wanted = session(projectId);
    await bench.store.createSession(wanted);
    const failed = await bench.store.createSession(wanted).then(
      () => 'created twice',
      (error: unknown) => String(error),
    );
    assert.match(failed, '23505');
    const { work } = await bench.store.metrics();
    const ofSessions = work.find(({ kind }) => kind === 'session');
    assert.equal(ofSessions, { kind: 'session', waiting: 1, running: 0 });
  });

  test('deliveries are claimed and reported together', async () => {
    await using bench = await openBench(engine);
    const counts = { 'claimDeliveries without any': 2, claimDeliveries: 2, reportAttempts: 2 };
    assert.equal(await deliveryCounts(await openFixture(bench, HEARD)), counts);
  });
}

test.run();
