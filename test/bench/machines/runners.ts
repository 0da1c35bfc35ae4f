/**
 * Reports of many runners to cores on PostgreSQL: each has 25 sessions and reports every 5 s, a
 * third of a lease, with a chunk of each session's log and, one session after the other, a segment
 * of each recording every 30 s. Cores, their gRPC and PostgreSQL are real; a runner is its calls.
 * Prints transactions a second and session, those that wrote and all, the part of idle cores, the
 * CPU of cores and PostgreSQL, and how long a report takes beside a transaction of one INSERT.
 *
 * node test/bench/machines/runners.ts [--cores 2] [--runners 100] [--seconds 60]
 */
import { randomBytes } from 'node:crypto';
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { newId } from '../../../core/common/ids.ts';
import type { Store } from '../../../core/store/types.ts';
import { must } from '../../../proto/common/must.ts';
import { blobParts } from '../../core/boot.ts';
import { newSession } from '../../core/store/engines.ts';
import { show } from '../support/figures.ts';
import { startCores, used } from './cores.ts';

const { values } = parseArgs({
  options: {
    cores: { type: 'string', default: '2' },
    runners: { type: 'string', default: '100' },
    seconds: { type: 'string', default: '60' },
  },
});
const [runnerCount, seconds] = [Number(values.runners), Number(values.seconds)];
const SESSIONS = 25;
const REPORT_MS = 5_000;
/** Reports between two segments of a recording. */
const SEGMENT_REPORTS = 6;
const SEGMENT_MS = REPORT_MS * SEGMENT_REPORTS;
const LEASE_MS = 15_000;
const SESSION_MS = 3_600_000;
/** Of five seconds of a session with five commands a second, compressed. */
const CHUNK = { entries: randomBytes(2_500), count: 50, size: 10_000 };
/** The bytes are a bucket's: a report has their rows. */
const SEGMENT = randomBytes(1_000);
const PLAIN_MS = 50;

type Runner = { runnerId: string; instanceId: string; leaseIds: string[] };

await using cores = await startCores(Number(values.cores));
const runners = await openRunners();
const [reports, plain]: [number[], number[]] = [[], []];
const idle = await watched();
const stop = new AbortController();
const simulated = [...runners.map(simulate), insertPlainly()];
await sleep(2 * REPORT_MS); // all have reported
reports.length = 0;
const loaded = await watched();
const count = reports.length;
stop.abort();
await Promise.all(simulated);
print();

type Watched = { all: number; writing: number; core: number; postgres: number };

/** A second: transactions of core, those that wrote, and processors in use. */
async function watched(): Promise<Watched> {
  const [cpu, first, inserted, at] = [
    cores.cpu(),
    await cores.transactions(),
    plain.length,
    performance.now(),
  ];
  await sleep(seconds * 1_000);
  const took = (performance.now() - at) / 1_000;
  const { core, postgres } = used(cpu, cores.cpu());
  const last = await cores.transactions();
  const writing = last.writing - first.writing - (plain.length - inserted);
  const counts = { all: last.all - first.all, writing, core, postgres };
  const each = Object.entries(counts).map(([name, count]) => [name, count / took]);
  return Object.fromEntries(each) as Watched;
}

/** Each with its sessions, which run. */
async function openRunners(): Promise<Runner[]> {
  await using opened = new AsyncDisposableStack();
  const store = opened.adopt(await cores.engine.open(''), (one) => one.close());
  const all: Runner[] = [];
  for (let n = 0; n < runnerCount; n += 1) all.push(await openRunner(store, n));
  return all;
}

async function openRunner(store: Store, n: number): Promise<Runner> {
  const at = Date.now();
  const row = { id: newId(), name: `project ${n}`, defaultTimeout: 900, concurrency: SESSIONS };
  const { id: projectId } = await store.ensureProject({ ...row, createdAt: at, updatedAt: at });
  const holder = { runnerId: `runner ${n}`, instanceId: 'first' };
  await store.registerRunner({ ...holder, at });
  const wanted = { at, timeoutMs: SESSION_MS, waitUntil: at + SESSION_MS };
  const ids = Array.from({ length: SESSIONS }, newId);
  await Promise.all(ids.map(() => store.createSession({ ...newSession(projectId), ...wanted })));
  const term = { ...holder, leaseMs: LEASE_MS, at };
  const work = await store.leaseWork({ ...term, kind: 'session', leaseIds: ids });
  const leaseIds = work.map(({ leaseId }) => leaseId);
  must(leaseIds[SESSIONS - 1], 'as many leases');
  await store.renewLeases({ ...term, leaseIds });
  await Promise.all(leaseIds.map((leaseId) => store.startSession({ leaseId, startedAt: at, at })));
  return { ...holder, leaseIds };
}

/** Reports to one core, at its own moment of each five seconds. */
async function simulate(runner: Runner, index: number): Promise<void> {
  const { runners: service, blobs } = must(cores.clients[index % cores.clients.length], 'a core');
  const begun = performance.now() + (index * REPORT_MS) / runnerCount;
  for (let number = 0; !stop.signal.aborted; number += 1) {
    await sleep(Math.max(0, begun + number * REPORT_MS - performance.now()));
    const due = runner.leaseIds.filter((_, n) => n % SEGMENT_REPORTS === number % SEGMENT_REPORTS);
    const upload = async (leaseId: string) => {
      const parts = blobParts({ kind: 'RECORDING', leaseId, reported: true }, SEGMENT);
      const { receipt } = await blobs.writeBlob(parts, cores.as('runner'));
      const part = Math.floor(number / SEGMENT_REPORTS);
      return pageOf(leaseId, part, must(receipt, 'a receipt'));
    };
    const recordings = await Promise.all(due.map(upload));
    const chunks = runner.leaseIds.map((leaseId) => ({ ...CHUNK, leaseId, number }));
    const at = performance.now();
    const entries = { chunks, lines: [], recordings };
    const answer = await service.reportRunner({ ...runner, entries }, cores.as('runner'));
    reports.push(performance.now() - at);
    const all = [...(answer.answers?.chunks ?? []), ...(answer.answers?.recordings ?? [])];
    const refused = all.find(({ reason }) => reason !== '');
    if (refused) throw new Error(`${refused.reason}: ${refused.message}`);
    if (answer.leaseIds.length < SESSIONS) throw new Error('a lease was lost');
  }
}

/** Part 0 is the start of the video, without a duration. */
function pageOf(leaseId: string, number: number, receipt: string) {
  const [startMs, endMs] = [Math.max(0, number - 1) * SEGMENT_MS, number * SEGMENT_MS];
  const page = { leaseId, pageId: 0, url: 'https://a.test/', startMs: 0, endMs, complete: false };
  return { ...page, parts: [{ number, receipt, startMs, endMs }] };
}

async function insertPlainly(): Promise<void> {
  while (!stop.signal.aborted) {
    const at = performance.now();
    await cores.insert();
    plain.push(performance.now() - at);
    await sleep(PLAIN_MS);
  }
}

function print(): void {
  const sessions = runnerCount * SESSIONS;
  const load = loadavg()[0]?.toFixed(1);
  console.log(`${runnerCount} runners of ${SESSIONS}, ${values.cores} cores; load ${load}`);
  console.log(`reports: ${(count / seconds).toFixed(1)}/s`);
  const line = (title: string, { all, writing, core, postgres }: Watched) => {
    const each = [writing, all].map((count) => (count / sessions).toFixed(4));
    console.log(`${title}: ${writing.toFixed(1)} writing transactions/s, ${all.toFixed(1)} in all`);
    console.log(`  of each session: ${each[0]} writing, ${each[1]} in all`);
    console.log(`  processors: cores ${core.toFixed(3)}, PostgreSQL ${postgres.toFixed(3)}`);
  };
  line('idle', idle);
  line('with reports', loaded);
  const own = Object.entries(loaded).map(([name, one]) => [
    name,
    one - idle[name as keyof Watched],
  ]);
  line('without the idle part', Object.fromEntries(own) as Watched);
  show('an INSERT', plain);
  show('a report', reports, plain);
}
