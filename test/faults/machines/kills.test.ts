/**
 * Two cores, two gateways and three runners over mTLS, under load: kill -9 of the leading core, of
 * the other core and of a runner, in turns, then SIGSTOP of the leader, then kill -9 of PostgreSQL.
 * A core that is killed or stands still ends no session, the other one takes its place, and nothing
 * acknowledged is lost; a killed runner ends its own sessions alone. TABERN_TEST_KILLS=50 kills a
 * core and a runner as often.
 */
import { suite } from 'uvu';
import { equal, is, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { ended, publish } from '../../support/clients/functions.ts';
import { until } from '../../support/poll.ts';
import { hasPostgres } from '../../support/postgres.ts';
import { type Receiver, startReceiver } from '../../support/servers/receiver.ts';
import { type Site, startSite } from '../../support/servers/site.ts';
import type { Stack } from '../../support/service/stack.ts';
import { sized } from '../../support/whole.ts';
import { killFamily } from '../kills.ts';
import {
  type Answers,
  type Live,
  type Load,
  openAnswers,
  openLive,
  startLoad,
  type Written,
} from './load.ts';
import { type Machines, startMachines } from './roles.ts';

const KILLS = Number(process.env['TABERN_TEST_KILLS'] ?? sized(1, 20));
/** Of the leader and of the other core at least once. */
const CORE_KILLS = Math.max(2, KILLS);
const SESSIONS = 3;
const CLIENTS = 1;
/** Ours: several times a lease and the wait after it, for a busy machine. */
const LIMIT_MS = 180_000;
/** In milliseconds until another core is the leader. Promised in the guide, "Deployment". */
const LEADER_MS = 5_000;
/** So many kills run on a machine that does nothing else; one runs beside other tests. */
const ALONE = 20;
const RUNNERS = ['r1', 'r2', 'r3'];
const ENDS = ['functions.invocations.completed', 'functions.invocations.failed'];

const PROJECT = {
  'package.json': '{"name":"counted","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
defineFn('counted', async (ctx, { url, n }) => {
  console.log('run ' + n);
  await fetch(url);
  return n;
});
`,
};

type Scene = { machines: Machines; answers: Answers; load: Load; live: Live[]; figures: Figures };
/** In milliseconds: until the other core was the leader, and until the last 503 after a kill. */
type Figures = { leader: number[]; refused: number[]; lost: number; killed: string[] };

const faults = suite('faults/machines');

if (hasPostgres()) {
  faults(`${KILLS} kills of a core and of a runner, and one of PostgreSQL`, async () => {
    await using opened = new AsyncDisposableStack();
    const receiver = opened.use(await startReceiver());
    const site = opened.use(await startSite());
    const machines = opened.use(await startMachines(receiver.caPath));
    const { stack } = machines;
    await machines.bothCores();
    const answers = openAnswers(stack);
    const { counted = '' } = await publish(stack, PROJECT);
    const hook = { endpoint: `${receiver.url}/hook`, eventTypes: ENDS };
    await stack.call('/v1/webhooks', { json: hook });
    const live: Live[] = [];
    opened.defer(async () => void (await Promise.all(live.map((one) => one.close()))));
    while (live.length < SESSIONS) live.push(await openLive(answers));
    const invoked = { functionId: counted, url: site.url, clients: CLIENTS };
    const load = opened.use(startLoad(answers, invoked));
    const figures: Figures = { leader: [], refused: [], lost: 0, killed: [] };
    const scene = { machines, answers, load, live, figures };
    try {
      for (let n = 0; n < CORE_KILLS; n += 1) {
        await killCore(scene, n % 2 === 0);
        if (n < KILLS) await killRunner(scene);
        console.log(`${n + 1} of a core; ${load.invocations.length} invocations`);
      }
      await stopCore(scene);
      await killDatabase(scene);
      await load.stop();
      await judge(scene, { receiver, site });
      if (KILLS >= ALONE) ok(Math.max(...figures.leader) < LEADER_MS, 'a leader in time');
    } finally {
      console.log(described(scene));
    }
  });
}

faults.run();

/** Kills the leader or the other core. Waits until the killed one is back. */
async function killCore(scene: Scene, isLeader: boolean): Promise<void> {
  const { machines, figures } = scene;
  const leader = await until(() => machines.leader());
  const other = machines.cores().find((pid) => pid !== leader);
  const killed = isLeader ? leader : must(other, 'the other core');
  const at = performance.now();
  figures.killed.push(`${isLeader ? 'leader' : 'other core'} ${Math.round(at)}`);
  process.kill(killed, 'SIGKILL');
  const isLed = async () => ![undefined, killed].includes(await machines.leader());
  await until(isLed, LIMIT_MS, 10);
  if (isLeader) figures.leader.push(performance.now() - at);
  await goesOn(scene);
  await machines.bothCores();
  figures.refused.push(refusedSince(scene, at));
}

/** The leader stands still, as on a machine that hangs, and goes on later as the other core. */
async function stopCore(scene: Scene): Promise<void> {
  const { machines, figures } = scene;
  const leader = await until(() => machines.leader());
  const at = performance.now();
  figures.killed.push(`leader stopped ${Math.round(at)}`);
  process.kill(leader, 'SIGSTOP');
  try {
    const isLed = async () => ![undefined, leader].includes(await machines.leader());
    await until(isLed, LIMIT_MS, 10);
    figures.leader.push(performance.now() - at);
    await goesOn(scene);
  } finally {
    process.kill(leader, 'SIGCONT');
  }
  await machines.bothCores();
  await goesOn(scene);
  figures.refused.push(refusedSince(scene, at));
}

/** Kills a runner with a session. Its sessions end; each is replaced by a new one. */
async function killRunner(scene: Scene): Promise<void> {
  const { machines, answers, live, figures } = scene;
  const { runner, ids } = await withSessions(scene);
  const instance = await machines.instanceOf(runner);
  figures.killed.push(`${runner} ${Math.round(performance.now())}`);
  await killFamily(machines.runnerPid(runner));
  const lost = live.filter(({ id }) => ids.includes(id));
  for (const one of lost) {
    const { code } = await until(() => one.closed(), LIMIT_MS);
    is(code, 1011);
    await until(async () => (await statusOf(scene, one)) === 'ERROR', LIMIT_MS);
    live.splice(live.indexOf(one), 1);
    await one.close();
  }
  await goesOn(scene);
  await until(async () => (await machines.instanceOf(runner)) !== instance, LIMIT_MS);
  while (live.length < SESSIONS) live.push(await openLive(answers));
  figures.lost += lost.length;
}

/** PostgreSQL is gone for a time: requests are refused, and sessions go on. */
async function killDatabase(scene: Scene): Promise<void> {
  const { machines, answers, live, figures } = scene;
  figures.killed.push(`PostgreSQL ${Math.round(performance.now())}`);
  await machines.database.kill();
  const [refused, marks] = [answers.refusedAt.length, live.map((one) => one.marks())];
  await until(() => answers.refusedAt.length > refused + 10, LIMIT_MS);
  for (const [index, one] of live.entries()) await until(() => one.marks() > (marks[index] ?? 0));
  await machines.database.start();
  await goesOn(scene);
  await machines.bothCores();
}

/** A runner with live sessions, in turns. */
async function withSessions({ machines, live }: Scene) {
  const runner = must(RUNNERS.shift(), 'a runner');
  RUNNERS.push(runner);
  const all = live.map(({ id }) => id);
  for (const one of [runner, ...RUNNERS]) {
    const ids = await machines.heldBy(one, all);
    if (ids.length > 0) return { runner: one, ids };
  }
  throw new Error('no runner has a session');
}

/** Waits for new acknowledged work and for answers of all sessions, which run. */
async function goesOn(scene: Scene): Promise<void> {
  const { answers, load, live } = scene;
  const [invoked, done] = [load.invocations.length, answers.done()];
  await until(() => load.invocations.length > invoked + CLIENTS, LIMIT_MS);
  await until(() => answers.done() > done + 2, LIMIT_MS);
  for (const one of live) {
    const marks = one.marks();
    await until(() => one.marks() > marks || one.failure() !== undefined, LIMIT_MS);
    equal([one.failure(), one.closed()], [undefined, undefined], one.id);
    is(await until(() => statusOf(scene, one), LIMIT_MS), 'RUNNING', one.id);
  }
}

async function statusOf({ answers }: Scene, { id }: Live): Promise<string | undefined> {
  return (await answers.send<{ status: string }>(`/v1/sessions/${id}`))?.status;
}

/** Everything acknowledged is there, ended once, and was delivered. */
async function judge(scene: Scene, { receiver, site }: { receiver: Receiver; site: Site }) {
  const { machines, answers, load, live } = scene;
  const { stack } = machines;
  equal(answers.unexpected, []);
  const labels = new Map((await labelsOf(stack)).map((one) => [one.id, one]));
  for (const made of load.labels) equal(labels.get(made.id), made);
  const results = new Map<string, string>();
  for (const { id, path } of load.invocations) {
    const { status, results: value } = await ended(stack, id, LIMIT_MS);
    results.set(id, status);
    if (status === 'COMPLETED') ok(path.endsWith(`-${value}`), path);
  }
  const runs = countOf(site.visits);
  for (const { id, path } of load.invocations) {
    if (results.get(id) === 'COMPLETED') is(runs.get(path), 1, path);
  }
  ok(
    [...runs.values()].every((count) => count === 1),
    'no handler ran twice',
  );
  const events = await machines.eventsOf(ENDS);
  for (const id of results.keys()) is(events.get(id), 1, `end events of ${id}`);
  const delivered = () =>
    new Set(receiver.requests.map(({ body }) => JSON.parse(`${body}`).resourceId));
  await until(() => [...results.keys()].every((id) => delivered().has(id)), LIMIT_MS, 500);
  for (const one of live) await expectLogs(scene, one);
  const completed = [...results.values()].filter((status) => status === 'COMPLETED');
  console.log(`${results.size} invocations, ${completed.length} COMPLETED`);
}

/** The log has what the client did before, during and after the kills. */
async function expectLogs({ machines: { stack } }: Scene, one: Live): Promise<void> {
  const marks = one.marks();
  const missing = async () => {
    const logs = JSON.stringify(await stack.call(`/v1/sessions/${one.id}/logs`));
    return [...Array(marks).keys()].filter((n) => !logs.includes(`mark ${n}.`));
  };
  await until(async () => (await missing()).length === 0, LIMIT_MS, 1_000).catch(async () => {
    equal(await missing(), [], `marks that the log of ${one.id} lacks, of ${marks}`);
  });
}

async function labelsOf(stack: Stack): Promise<Written[]> {
  const all: Written[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const path: string = `/v1/labels?limit=100${cursor && `&cursor=${cursor}`}`;
    const page = await stack.call<{ data: Written[]; nextCursor: string | null }>(path);
    all.push(...page.data);
    cursor = page.nextCursor;
  }
  return all;
}

function countOf(texts: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

/** The time from the kill to the last request that was refused. */
function refusedSince({ answers }: Scene, at: number): number {
  return Math.max(0, (answers.refusedAt.at(-1) ?? 0) - at);
}

function described({ answers, load, figures }: Scene): string {
  const shown = (all: number[]) => all.map((ms) => `${Math.round(ms)}`).join(', ');
  return `killed at ms: ${figures.killed.join(', ')}
another leader after ms: ${shown(figures.leader)}
the last 503 after ms: ${shown(figures.refused)}
${load.labels.length} labels and ${load.invocations.length} invocations acknowledged
${answers.done()} answers of 2xx, ${answers.refusedAt.length} of 503, ${answers.unknown()} unknown
${answers.unexpected.length} unexpected: ${answers.unexpected.slice(0, 20).join('\n')}
${figures.lost} sessions of killed runners`;
}
