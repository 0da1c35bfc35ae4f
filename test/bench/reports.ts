/**
 * Transactions of core for the logs and recordings of many sessions of one runner: core with its
 * SQLite store, the lease thread, the senders of protocol logs and the uploads of recordings are
 * the product's; the sessions' messages and videos are simulated. Prints transactions a second and
 * session, and how long an entry takes until it can be read, with and without a reader.
 *
 * node test/bench/reports.ts [sessions] [seconds]
 */

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { openLog } from '../../proto/common/log.ts';
import { must } from '../../proto/common/must.ts';
import { pause } from '../../proto/common/pause.ts';
import type { Chrome } from '../../runner/browser/launch.ts';
import { openLease } from '../../runner/leases/lease.ts';
import { openLeaseThread } from '../../runner/leases/lease-worker.ts';
import { openLeases } from '../../runner/leases/leases.ts';
import { sessionLogs } from '../../runner/sessions/log/log-shipper.ts';
import { openLogSpace } from '../../runner/sessions/log/spool.ts';
import type { Encoder } from '../../runner/sessions/recording/encoder.ts';
import {
  openRecordings,
  type Recordings,
  type Track,
} from '../../runner/sessions/recording/uploader.ts';
import { type Booted, boot, HOLDER } from '../core/boot.ts';
import { frame } from '../runner/sessions/recording/encoder-bench.ts';
import { testRunner } from '../support/runner/lease.ts';
import { tempDirectory } from '../support/temp.ts';

const [sessions = 25, seconds = 30] = process.argv.slice(2).map(Number);
/** Between two messages of a session. */
const MESSAGE_MS = 200;
/** Between the first messages of the first session and of the last one. */
const SPREAD_MS = 700;
const LEASE_MS = 15_000;
const READS = 12;
/** Of a page that changes all the time: runner/sessions/recording/recording.ts. */
const SEGMENT_MS = 30_000;
/** In bytes: 15 kB a second. */
const SEGMENT = Buffer.alloc(450_000);

const log = openLog({ role: 'bench', level: 'silent' });
const never = new AbortController().signal;

/** Each commit that changes the file changes its version, as another connection sees it. */
async function transactionsDuring(app: Booted, ms: number): Promise<number> {
  using database = new DatabaseSync(join(app.dir, 'tabern.db'), { readOnly: true });
  const version = database.prepare('PRAGMA data_version');
  let [count, last] = [0, JSON.stringify(version.get())];
  const until = performance.now() + ms;
  while (performance.now() < until) {
    await sleep(1);
    const now = JSON.stringify(version.get());
    if (now !== last) count += 1;
    last = now;
  }
  return count;
}

/** A session's log without a Chrome, and its messages. */
async function openSession(app: Booted, leases: ReturnType<typeof openLeases>, functionId: string) {
  const { sessionId } = await app.invoke(functionId);
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  const held = leases.hold(leaseId);
  leases.acknowledge([leaseId]);
  const runner = testRunner({ clients: app.clients, call: app.asRunner, log });
  const lease = openLease(held, runner);
  const own = { sessionId, projectId: 'bench' };
  const logs = sessionLogs(own, { runner, lease, space: openLogSpace() });
  const pipe = {
    call: async () => ({ targetInfos: [] }),
    onEvent: () => () => undefined,
    closed: new Promise(() => {}),
  };
  const part = await logs.open({ pipe } as unknown as Chrome);
  const recorded = must(part.recorder, 'a recorder').session(0);
  let number = 0;
  const emit = () => {
    number += 1;
    recorded.onMessage(Buffer.from(`{"method":"Page.n${number}","params":{}}`), Date.now());
    return `Page.n${number}`;
  };
  return { sessionId, lease, emit, end: () => part.closeLast?.() };
}
type Session = Awaited<ReturnType<typeof openSession>>;

/** Encodes nothing: each segment has the same bytes. */
const encoder: Encoder = {
  async encode({ frames }) {
    for await (const _ of frames);
    return { start: Buffer.from('start'), segment: SEGMENT };
  },
  async [Symbol.asyncDispose]() {},
};

/** Records one page; the segments of all sessions are spread over SEGMENT_MS. */
function record(app: Booted, recordings: Recordings, session: Session, at: number): Recorded {
  const { lease, sessionId } = session;
  const now = Date.now();
  const track: Track = {
    clients: app.clients,
    lease,
    sessionId,
    projectId: 'bench',
    pageId: 0,
    url: 'https://a.test/',
    sessionAt: now,
    startAt: now,
    bytes: 0,
    isBroken: false,
    warn: () => undefined,
  };
  void recordings.report(track, never);
  let number = 0;
  const cut = (): void => {
    number += 1;
    const buffer = recordings.openFrameBuffer(`${lease.id}-${number}`, 'bench');
    const from = now + (number - 1) * SEGMENT_MS;
    buffer.add({ jpeg: frame(`${number}`), at: from });
    recordings.send({ track, number, buffer, until: from + SEGMENT_MS, isLast: false });
  };
  const stop = new AbortController();
  void (async () => {
    await pause(at, stop.signal);
    while (!stop.signal.aborted) {
      cut();
      await pause(SEGMENT_MS, stop.signal);
    }
  })();
  return { stop: () => stop.abort(), sent: () => number, track };
}
type Recorded = { stop(): void; sent(): number; track: Track };

/** From a message until it is in the log, read by a project. */
async function readableAfter(
  app: Booted,
  { sessionId, emit }: Session,
  pollMs: number,
): Promise<number> {
  const method = emit();
  const at = performance.now();
  for (;;) {
    const { logs } = await app.clients.sessions.listSessionLogs({ id: sessionId }, app.asProject);
    if (logs.some((entry) => entry.method === method)) return performance.now() - at;
    await sleep(pollMs);
  }
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

await using app = await boot({ TABERN_CONCURRENCY: String(sessions + 1) });
const token = String(app.asRunner.metadata?.['authorization']).replace('Bearer ', '');
const config = { core: app.core.address, token, logLevel: 'silent', coreTls: undefined } as const;
await using leases = openLeases({
  log,
  clients: app.clients,
  call: app.asRunner,
  runner: HOLDER,
  leaseMs: LEASE_MS,
  openThread: (listener) =>
    openLeaseThread({ config, runner: HOLDER, leaseMs: LEASE_MS }, listener),
  isBrowserFailing: () => false,
  onSuperseded: () => undefined,
  onFailed: (error) => {
    throw error;
  },
  stopped: never,
});
const functionId = await app.publish({ name: 'f' });
const all: Session[] = [];
for (let n = 0; n < sessions; n += 1) all.push(await openSession(app, leases, functionId));
const messages: NodeJS.Timeout[] = [];
for (const { emit } of all) {
  await sleep(SPREAD_MS / sessions); // sessions of users do not begin together
  messages.push(setInterval(emit, MESSAGE_MS));
}
await using folder = tempDirectory();
const isOverloaded = (): boolean => false; // its own callers do that
await using recordings = openRecordings({ encoder, runDir: folder.path, log, isOverloaded });
const recorded = all.map((session, n) => {
  return record(app, recordings, session, (n * SEGMENT_MS) / sessions);
});
await sleep(LEASE_MS / 3);
const sentOf = () => recorded.reduce((sum, { sent }) => sum + sent(), 0);
const sentBefore = sentOf();
const count = await transactionsDuring(app, seconds * 1_000);
const perSession = count / seconds / sessions;
console.log(`${sessions} sessions, ${seconds} s: ${(count / seconds).toFixed(2)} transactions/s`);
console.log(`per session: ${perSession.toFixed(4)} transactions/s`);
console.log(`segments meanwhile: ${sentOf() - sentBefore}`);
for (const { stop } of recorded) stop();
await recordings.idle();
if (recorded.some(({ track }) => track.isBroken)) throw new Error('a recording is incomplete');
const first = must(all[0], 'a session');
const latest: number[] = [];
console.log(`first read of an entry: ${Math.round(await readableAfter(app, first, 50))} ms`);
for (let n = 0; n < READS; n += 1) latest.push(await readableAfter(app, first, 50));
console.log(`while it is read: ${Math.round(median(latest))} ms (median of ${READS})`);
for (const timer of messages) clearInterval(timer);
const ends = await Promise.all(
  all.map(async ({ end }) => {
    const at = performance.now();
    await end();
    return performance.now() - at;
  }),
);
console.log(`end of a log: ${Math.round(median(ends))} ms (median)`);
