/**
 * What the work of a runner costs the store each second: the renewal of its leases and a new part
 * of each log, as a call for each or as the runner's one report.
 */
import { newId } from '../../../core/common/ids.ts';
import type { NewRecording } from '../../../core/store/types/recordings.ts';
import { must } from '../../../proto/common/must.ts';
import { type Bench, HOLDER, LEASE_MS, T0 } from '../../core/store/engines.ts';

/** Invocations of the runner: each has lines and a session with a protocol log. */
export const SESSIONS = 25;

const RENEWAL = { ...HOLDER, leaseMs: LEASE_MS, at: T0 };
const LINE_LIMITS = { maxBytes: 2 ** 40, linesMax: 2 ** 40, marker: '' };
const QUOTA = { kinds: ['SESSION_LOG', 'RESULT'], maxBytes: 2 ** 40 } as const;
/** Of some 200 ms of a session, compressed. */
const ENTRIES = Buffer.alloc(300, 7);
const LINE = { message: 'a line as programs print it', at: T0, level: 'log' };

export type Worker = Pick<Bench, 'store'> & {
  projectId: string;
  leaseIds: readonly string[];
  /** The number of the next line, and of the next chunk. */
  next: { line: number; chunk: number };
};

export async function openWorker(bench: Bench): Promise<Worker> {
  const projectId = await bench.project('worker', SESSIONS);
  const version = await bench.publish(projectId);
  for (let n = 0; n < SESSIONS; n += 1) await bench.accept(projectId, version);
  const work = await bench.lease('invocation', SESSIONS);
  const leaseIds = work.map(({ leaseId }) => leaseId);
  must(leaseIds[SESSIONS - 1], 'as many leases');
  return { store: bench.store, projectId, leaseIds, next: { line: 0, chunk: 0 } };
}

type Second = (worker: Worker) => Promise<unknown>;

const chunkOf = (leaseId: string, number: number) => ({
  leaseId,
  number,
  entries: ENTRIES,
  count: 5,
  size: 1_000,
});

const renewals: Second = ({ store, leaseIds }) =>
  Promise.all(leaseIds.map((leaseId) => store.renewLeases({ ...RENEWAL, leaseIds: [leaseId] })));

const lines: Second = ({ store, leaseIds, next }) => {
  const first = next.line++;
  const wanted = { first, lines: [LINE], ...LINE_LIMITS };
  return Promise.all(leaseIds.map((leaseId) => store.appendLogs({ leaseId, ...wanted })));
};

const chunks: Second = ({ store, leaseIds, next }) => {
  const number = next.chunk++;
  const limits = { maxBytes: 2 ** 40, within: QUOTA, endedAfter: T0, at: T0 };
  return Promise.all(
    leaseIds.map((leaseId) => store.appendSessionLog({ ...chunkOf(leaseId, number), ...limits })),
  );
};

/** A report with a line and a chunk of all work. */
export function report(
  { store, leaseIds, next }: Worker,
  recordings: NewRecording[] = [],
): ReturnType<Worker['store']['reportRunner']> {
  const [first, number] = [next.line++, next.chunk++];
  return store.reportRunner({
    ...RENEWAL,
    leaseIds: [...leaseIds],
    chunks: leaseIds.map((leaseId) => chunkOf(leaseId, number)),
    lines: leaseIds.map((leaseId) => ({ leaseId, first, lines: [LINE] })),
    recordings,
    chunksMaxBytes: 2 ** 40,
    logQuota: QUOTA,
    lineLimits: LINE_LIMITS,
    recordingLimits: { quota: { ...QUOTA, kinds: ['RECORDING'] }, endedAfter: T0 },
  });
}

/** A segment of each session's recording, of half a minute. */
export function segments({ projectId, leaseIds }: Worker, number: number): NewRecording[] {
  const times = { startMs: number * 30_000, endMs: (number + 1) * 30_000 };
  const of = { projectId, kind: 'RECORDING', size: 450_000, sha256: 'aa', createdAt: T0 } as const;
  const page = { pageId: 0, ...times, url: 'https://a.test/', complete: false };
  return leaseIds.map((leaseId) => {
    return { ...page, leaseId, parts: [{ number, ...times, blob: { ...of, id: newId() } }] };
  });
}

/** What earlier versions do not have. */
export const REPORT = 'renewal, line and chunk, one report';

/** All calls of one second are made at once. */
export const SECONDS: Readonly<Record<string, Second>> = {
  'a renewal each': renewals,
  'a renewal of all leases': ({ store, leaseIds }) =>
    store.renewLeases({ ...RENEWAL, leaseIds: [...leaseIds] }),
  'a log line each': lines,
  'a chunk of its protocol log each': chunks,
  'renewal, line and chunk, by calls': (worker) =>
    Promise.all([renewals(worker), lines(worker), chunks(worker)]),
  [REPORT]: (worker) => report(worker),
};
