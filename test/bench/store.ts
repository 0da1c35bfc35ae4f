/**
 * The engines of the store side by side: the operations of a session and of an invocation, by many
 * callers at once. PostgreSQL runs on this machine, without syncs of the disk, as SQLite does here.
 *   node test/bench/store.ts [--callers 32] [--rounds 40] [--engine postgres]
 */
import { parseArgs } from 'node:util';
import { newId } from '../../core/common/ids.ts';
import { must } from '../../proto/common/must.ts';
import { type Bench, ENGINES, HOLDER, LEASE_MS, openBench, T0 } from '../core/store/engines.ts';

const { values } = parseArgs({
  options: {
    callers: { type: 'string', default: '32' },
    rounds: { type: 'string', default: '40' },
    engine: { type: 'string' },
  },
});
const [callers, rounds] = [Number(values.callers), Number(values.rounds)];

type Timed = Map<string, number[]>;

async function timed<T>(times: Timed, name: string, run: () => Promise<T>): Promise<T> {
  const at = performance.now();
  const value = await run();
  times.set(name, [...(times.get(name) ?? []), performance.now() - at]);
  return value;
}

async function session({ store }: Bench, projectId: string, times: Timed): Promise<void> {
  await timed(times, 'createSession', () =>
    store.createSession({
      id: newId(),
      projectId,
      region: 'us-west-2',
      contextId: null,
      extensionId: null,
      keepAlive: false,
      params: '{}',
      timeoutMs: 60_000,
      at: T0,
      waitUntil: T0 + 60_000,
      userMetadata: null,
    }),
  );
  const wanted = { ...HOLDER, leaseMs: LEASE_MS, at: T0 };
  const [work] = await timed(times, 'leaseWork', () =>
    store.leaseWork({ ...wanted, kind: 'session', leaseIds: [newId()] }),
  );
  if (work === undefined) return;
  const { leaseId } = work;
  await timed(times, 'startSession', () => store.startSession({ leaseId, startedAt: T0, at: T0 }));
  await timed(times, 'renewLeases', () => store.renewLeases({ ...wanted, leaseIds: [leaseId] }));
  const end = { status: 'COMPLETED', reason: 'over', proxyBytes: 0, at: T0 } as const;
  await timed(times, 'completeSession', () => store.completeSession({ leaseId, ...end }));
}

function at(sorted: readonly number[], part: number): string {
  return must(sorted[Math.floor((sorted.length - 1) * part)], 'a time').toFixed(1);
}

for (const engine of ENGINES.filter(({ name }) => name === (values.engine ?? name))) {
  await using bench = await openBench(engine);
  const names = Array.from({ length: 8 }, (_, index) => `project ${index}`);
  const projects = await Promise.all(names.map((name) => bench.project(name, 10_000)));
  const times: Timed = new Map();
  const run = async (count: number): Promise<void> => {
    await Promise.all(
      Array.from({ length: callers }, async (_, caller) => {
        const projectId = must(projects[caller % projects.length], 'project');
        for (let round = 0; round < count; round += 1) await session(bench, projectId, times);
      }),
    );
  };
  await run(5);
  times.clear();
  const begun = performance.now();
  const cpu = process.cpuUsage();
  await run(rounds);
  const { user, system } = process.cpuUsage(cpu);
  const seconds = (performance.now() - begun) / 1_000;
  const count = [...times.values()].reduce((sum, { length }) => sum + length, 0);
  const each = Math.round((user + system) / count);
  const rate = Math.round(count / seconds);
  console.log(`${engine.name}: ${rate} operations a second, ${each} us of CPU here for each`);
  for (const [name, all] of times) {
    const sorted = all.toSorted((a, b) => a - b);
    console.log(`  ${name.padEnd(16)} p50 ${at(sorted, 0.5)} ms, p95 ${at(sorted, 0.95)} ms`);
  }
}
