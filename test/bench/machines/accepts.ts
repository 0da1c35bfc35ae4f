/**
 * Invocations that cores on PostgreSQL accept in a second, by calls over gRPC as gateways make
 * them, beside transactions of one INSERT by as many callers in the same rounds. PostgreSQL runs on
 * this machine, in memory and without syncs, and shares its cores with all others; so the CPU of
 * 1,000 invocations is printed, and what four cores of PostgreSQL would accept is computed from it.
 *
 * node test/bench/machines/accepts.ts [--cores 2] [--callers 32] [--seconds 10] [--rounds 5]
 */
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { must } from '../../../proto/common/must.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import { openBench } from '../../core/store/engines.ts';
import { quantile } from '../support/figures.ts';
import { startCores, used } from './cores.ts';

const { values } = parseArgs({
  options: {
    cores: { type: 'string', default: '2' },
    callers: { type: 'string', default: '32' },
    seconds: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '5' },
  },
});
const [callers, seconds, rounds] = [values.callers, values.seconds, values.rounds].map(Number) as [
  number,
  number,
  number,
];
const PROJECTS = 8;
/** Of PostgreSQL. Source: the bar of design/growth.md. */
const COMPUTED_CORES = 4;

type Published = { functionId: string; as: CallOptions };

await using cores = await startCores(Number(values.cores));
const published = await publishAll();

/** A function of each project, whose queues take turns in no row of the other ones. */
async function publishAll(): Promise<Published[]> {
  const { operators, projects } = must(cores.clients[0], 'a core');
  const all: Published[] = [];
  await using bench = await openBench(cores.engine);
  for (let n = 0; n < PROJECTS; n += 1) {
    const name = `project ${n}`;
    await operators.createProject({ name, limits: undefined }, cores.as('operator'));
    const { key } = await operators.createApiKey({ project: name, name: '' }, cores.as('operator'));
    const as = { metadata: { 'x-svc-api-key': key } };
    const [project] = (await projects.listProjects({}, as)).projects;
    const { functionId } = await bench.publish(must(project, 'a project').id);
    all.push({ functionId, as });
  }
  return all;
}

type Figures = {
  rate: number;
  p50: number;
  p95: number;
  /** Of the cores' database, for each call. */
  transactions: number;
  cpu: { core: number; postgres: number };
};

/** By all callers, each one call after the other. `cpu`: seconds for 1,000. */
async function measure(act: (caller: number) => Promise<unknown>): Promise<Figures> {
  const took: number[] = [];
  const [before, { all }] = [cores.cpu(), await cores.transactions()];
  const begun = performance.now();
  const until = begun + seconds * 1_000;
  const call = async (_: unknown, caller: number): Promise<void> => {
    for (let at = performance.now(); at < until; at = performance.now()) {
      await act(caller);
      took.push(performance.now() - at);
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
  const rate = took.length / ((performance.now() - begun) / 1_000);
  const { core, postgres } = used(before, cores.cpu());
  const transactions = ((await cores.transactions()).all - all) / took.length;
  const each = 1_000 / took.length;
  const [p50, p95] = [quantile(took, 0.5), quantile(took, 0.95)];
  const cpu = { core: core * each, postgres: postgres * each };
  return { rate, p50, p95, transactions, cpu };
}

/** Calls go to the first `count` cores in turn. */
function accept(count: number): (caller: number) => Promise<unknown> {
  return async (caller) => {
    const { functionId, as } = must(published[caller % PROJECTS], 'a function');
    const { invocations } = must(cores.clients[Math.floor(caller / PROJECTS) % count], 'a core');
    const wanted = { functionId, params: { a: 1 }, sessionCreateParams: undefined };
    await invocations.invokeFunction(wanted, as);
  };
}

const PLAIN = 'a transaction of one INSERT';
const measures = new Map([
  [PLAIN, () => measure(() => cores.insert())],
  ...cores.clients.map((_, index) => {
    const title = `accepted by ${index + 1} of the cores`;
    return [title, () => measure(accept(index + 1))] as const;
  }),
]);
const found = new Map<string, Figures[]>([...measures.keys()].map((title) => [title, []]));
for (let round = -1; round < rounds; round += 1) {
  for (const [title, act] of measures) {
    const figures = await act();
    if (round >= 0) found.get(title)?.push(figures);
  }
}

const middle = (all: readonly Figures[], of: (one: Figures) => number): number =>
  quantile(all.map(of), 0.5);
console.log(`${callers} callers, medians of ${rounds} rounds; load ${loadavg()[0]?.toFixed(1)}`);
for (const [title, all] of found) {
  const plain = must(found.get(PLAIN), 'the plain thing');
  const rate = middle(all, (one) => one.rate);
  const ratios = all.map((one, round) => one.rate / (plain[round]?.rate ?? Number.NaN));
  const [p50, p95] = [middle(all, (one) => one.p50), middle(all, (one) => one.p95)];
  const [core, server] = [
    middle(all, ({ cpu }) => cpu.core),
    middle(all, ({ cpu }) => cpu.postgres),
  ];
  const computed = (COMPUTED_CORES * 1_000) / server;
  console.log(`${title}: ${rate.toFixed(0)}/s = ${quantile(ratios, 0.5).toFixed(2)}x`);
  console.log(`  p50 ${p50.toFixed(1)} ms, p95 ${p95.toFixed(1)} ms`);
  const transactions = middle(all, (one) => one.transactions).toFixed(1);
  console.log(`  ${transactions} transactions of the cores' database each`);
  console.log(`  CPU of 1,000: core ${core.toFixed(2)} s, PostgreSQL ${server.toFixed(2)} s`);
  console.log(`  computed, ${COMPUTED_CORES} cores of PostgreSQL: ${computed.toFixed(0)}/s`);
}
