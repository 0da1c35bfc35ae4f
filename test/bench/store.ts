/**
 * The engines of the store side by side, and the SQLite of another checkout beside this one's. In
 * each round all of them do the same in turn, so that what slows the machine slows all. PostgreSQL
 * runs on this machine, without syncs of the disk, as SQLite does here.
 *   node test/bench/store.ts [--rounds 40] [--engine sqlite] [--against <another checkout>]
 * First what a runner's work costs a second: renewals and new parts of logs, a call for each, and
 * as its one report (bench/support/store-seconds.ts). Then the operations of a session by many
 * callers at once.
 */
import { loadavg } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { newId } from '../../core/common/ids.ts';
import { must } from '../../proto/common/must.ts';
import {
  type Bench,
  ENGINES,
  HOLDER,
  LEASE_MS,
  newSession,
  type Opener,
  openBench,
  T0,
} from '../core/store/engines.ts';
import { quantile } from './support/figures.ts';
import { openWorker, REPORT, SECONDS, SESSIONS } from './support/store-seconds.ts';

const { values } = parseArgs({
  options: {
    callers: { type: 'string', default: '32' },
    rounds: { type: 'string', default: '40' },
    engine: { type: 'string' },
    against: { type: 'string' },
  },
});
const [callers, rounds] = [Number(values.callers), Number(values.rounds)];
const WARM_UP = 2;
/** Seconds of a runner in one measurement, and sessions of each caller. */
const [REPEATED, EACH] = [10, 2];
const PROJECTS = 8;
const WHOLE = `a whole session, ${callers} callers`;

/** In microseconds, of one measurement. */
type Cost = { wall: number; cpu: number };
type Measure = () => Promise<Cost>;

async function costOf(act: () => Promise<unknown>, count: number): Promise<Cost> {
  const cpu = process.cpuUsage();
  const begun = performance.now();
  await act();
  const wall = ((performance.now() - begun) * 1_000) / count;
  const { user, system } = process.cpuUsage(cpu);
  return { wall, cpu: (user + system) / count };
}

/** The SQLite of another checkout, by the operations that this one has, too. */
async function openerOf(checkout: string): Promise<Opener> {
  const path = join(resolve(checkout), 'core/store/thread.ts');
  const { openStore } = (await import(path)) as typeof import('../../core/store/thread.ts');
  const onFatal = (error: Error) => {
    throw error;
  };
  return {
    name: `sqlite of ${checkout}`,
    open: (dir) => openStore({ dir, durability: 'normal', onFatal }),
  };
}

/** In milliseconds: the calls of each operation. */
type Latencies = Map<string, number[]>;

/** A session of its own from its creation to its end: five operations. */
async function session({ store }: Bench, projectId: string, latencies: Latencies): Promise<void> {
  const timed = async <T>(name: string, call: Promise<T>): Promise<T> => {
    const at = performance.now();
    const value = await call;
    const known = latencies.get(name) ?? [];
    latencies.set(name, known);
    known.push(performance.now() - at);
    return value;
  };
  const wanted = { ...HOLDER, leaseMs: LEASE_MS, at: T0 };
  await timed('createSession', store.createSession(newSession(projectId)));
  const leaseIds = [newId()];
  const leasing = store.leaseWork({ ...wanted, kind: 'session', leaseIds });
  const { leaseId } = must((await timed('leaseWork', leasing))[0], 'work');
  await timed('startSession', store.startSession({ leaseId, startedAt: T0, at: T0 }));
  await timed('renewLeases', store.renewLeases({ ...wanted, leaseIds: [leaseId] }));
  const end = { status: 'COMPLETED', reason: 'over', proxyBytes: 0, at: T0 } as const;
  await timed('completeSession', store.completeSession({ leaseId, ...end }));
}
const OPERATIONS = 5;

type Side = {
  name: string;
  measures: Map<string, Measure>;
  costs: Map<string, Cost[]>;
  latencies: Latencies;
};

/** The measurements on one engine, by their names. */
async function openSide({ name }: Opener, bench: Bench): Promise<Side> {
  const side: Side = { name, measures: new Map(), costs: new Map(), latencies: new Map() };
  const { measures, latencies } = side;
  const worker = await openWorker(bench);
  for (const [title, second] of Object.entries(SECONDS)) {
    if (title === REPORT && bench.store.reportRunner === undefined) continue;
    const seconds = async () => {
      for (let n = 0; n < REPEATED; n += 1) await second(worker);
    };
    measures.set(title, () => costOf(seconds, REPEATED * SESSIONS));
  }
  const names = Array.from({ length: PROJECTS }, (_, index) => `project ${index}`);
  const projects = await Promise.all(names.map((one) => bench.project(one, 10_000)));
  const sessions = () =>
    Promise.all(
      Array.from({ length: callers }, async (_, caller) => {
        const projectId = must(projects[caller % PROJECTS], 'a project');
        for (let n = 0; n < EACH; n += 1) await session(bench, projectId, latencies);
      }),
    );
  measures.set(WHOLE, () => costOf(sessions, callers * EACH));
  return side;
}

/** `12.3 (11.9 to 13.0)`: the median and the quartiles. */
function spread(found: readonly number[], digits: number): string {
  const parts = [0.25, 0.5, 0.75].map((part) => quantile(found, part).toFixed(digits));
  return `${parts[1]} (${parts[0]} to ${parts[2]})`;
}

/** `other`: of the other checkout in the same rounds. */
function show(title: string, costs: readonly Cost[], other: readonly Cost[] | undefined): void {
  for (const key of ['wall', 'cpu'] as const) {
    const found = spread(
      costs.map((cost) => cost[key]),
      1,
    );
    const ratios = costs.map((cost, round) => cost[key] / (other?.[round]?.[key] ?? Number.NaN));
    const ratio = other ? `, ${spread(ratios, 3)} of ${values.against}` : '';
    console.log(`  ${(key === 'wall' ? title : '').padEnd(36)} ${key.padEnd(4)} ${found}${ratio}`);
  }
}

function showLatencies({ costs, latencies }: Side): void {
  const us = quantile(
    (costs.get(WHOLE) ?? []).map(({ wall }) => wall),
    0.5,
  );
  console.log(`  ${Math.round((OPERATIONS * 1_000_000) / us)} operations of sessions a second`);
  for (const [operation, found] of latencies) {
    const [p50, p95] = [0.5, 0.95].map((part) => quantile(found, part).toFixed(1));
    console.log(`    ${operation.padEnd(16)} p50 ${p50} ms, p95 ${p95} ms`);
  }
}

await using opened = new AsyncDisposableStack();
const openers = ENGINES.filter(({ name }) => name === (values.engine ?? name));
if (values.against !== undefined) openers.push(await openerOf(values.against));
const sides: Side[] = [];
for (const opener of openers) {
  sides.push(await openSide(opener, opened.use(await openBench(opener))));
}
const titles = [...Object.keys(SECONDS), WHOLE];
for (let round = -WARM_UP; round < rounds; round += 1) {
  if (round === 0) for (const { latencies } of sides) latencies.clear();
  for (const title of titles) {
    for (const { measures, costs } of round % 2 === 0 ? sides : sides.toReversed()) {
      const cost = await measures.get(title)?.();
      if (cost !== undefined && round >= 0) costs.set(title, [...(costs.get(title) ?? []), cost]);
    }
  }
}
const against = values.against === undefined ? undefined : sides.at(-1);
console.log(`us of a session, medians and quartiles of ${rounds} rounds; load ${loadavg()[0]}`);
for (const side of sides) {
  console.log(`${side.name}:`);
  const other = side.name === 'sqlite' ? against : undefined;
  for (const [title, costs] of side.costs) show(title, costs, other?.costs.get(title));
  showLatencies(side);
}
