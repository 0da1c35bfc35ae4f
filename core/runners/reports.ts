/**
 * The report of a runner: renewals of leases, new parts of logs and recordings, and what the runner
 * is, in one call and one transaction. Each entry answers for itself: a lost lease, a full log or
 * an invalid entry does not fail the others.
 */
import {
  RUNNER_BATCH_MAX,
  RUNNER_LABEL_MAX_CHARS,
  RUNNER_LABELS_MAX,
  SESSION_LOG_MAX_BYTES,
} from '../../proto/common/limits.ts';
import { must } from '../../proto/common/must.ts';
import type {
  LogAnswer,
  LogEntries,
  LogLines,
  ReportRunnerRequest,
  ReportRunnerResponse,
  RunnerBrowser,
  RunnerFacts,
  SessionLogChunk,
} from '../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import { inRange, leaseLost } from '../api/checks.ts';
import type { LogReaders } from '../common/log-readers.ts';
import type { Receipts } from '../files/receipts.ts';
import type { Readiness } from '../maintenance/readiness.ts';
import type { Quotas } from '../projects/quotas.ts';
import { LINES_MAX_BYTES } from '../sessions/logs.ts';
import { limits, notAdded, reportedRecording } from '../sessions/recordings/arrivals.ts';
import type { RecordingAnswer } from '../store/types/recordings.ts';
import type { EntryAnswer } from '../store/types/sessions.ts';
import type { Store } from '../store/types.ts';

/** Of each kind. Source: runners.proto. */
const ENTRIES_MAX = 512;
/** In bytes, of one chunk, compressed. Source: runners.proto. */
const CHUNK_MAX_BYTES = 1 << 20;
/** Entries of one chunk. Ours: a runner sends 500. */
const CHUNK_MAX = 10_000;
/** Of the name of a line's level. Ours: it is not counted in the bytes of a log. */
const LEVEL_MAX_CHARS = 16;
/**
 * In bytes of text per invocation or build. Ours: a log is read in one answer. Empty lines have no
 * bytes but use memory.
 */
const LINE_LIMITS = {
  maxBytes: 1 << 20,
  linesMax: 20_000,
  marker: '[the log exceeds 1 MiB or 20,000 lines: what follows is not kept]',
};
const STORED: LogAnswer = { full: false, reason: '', message: '' };
const FACT_LENGTH = { max: 128, unit: ' characters' };
const LABEL_LENGTH = { max: RUNNER_LABEL_MAX_CHARS, unit: ' characters' };

/** What a runner is. */
type Facts = { facts: RunnerFacts | undefined; browser: RunnerBrowser | undefined };

export type ReportOptions = {
  store: Pick<Store, 'reportRunner'>;
  quotas: Pick<Quotas, 'usual'>;
  readiness: Pick<Readiness, 'record'>;
  readers: Pick<LogReaders, 'ids'>;
  receipts: Pick<Receipts, 'read'>;
  now: () => number;
  leaseMs: number;
};

/** Throws LEASE_LOST for a superseded instance, and INVALID_FIELD. */
export async function reportRunner(
  { store, quotas, readiness, readers, receipts, now, leaseMs }: ReportOptions,
  request: ReportRunnerRequest,
): Promise<ReportRunnerResponse> {
  const { runnerId, instanceId, leaseIds, draining: isDraining, entries, ...report } = request;
  if (leaseIds.length > RUNNER_BATCH_MAX) {
    throw invalidField('leaseIds', `must be at most ${RUNNER_BATCH_MAX}.`);
  }
  const { browserFailed, browser, facts } = report;
  const own = checkedFacts({ facts, browser });
  const at = now();
  const chunks = checked(entries?.chunks ?? [], 'chunks', checkedChunk);
  const lines = checked(entries?.lines ?? [], 'lines', checkedLines);
  const recordings = checked(entries?.recordings ?? [], 'recordings', (one) =>
    reportedRecording(one, { receipts, at }),
  );
  const renewal = { runnerId, instanceId, leaseIds, isDraining, leaseMs, at };
  const stored = await store.reportRunner({
    ...renewal,
    chunks: chunks.valid,
    lines: lines.valid,
    chunksMaxBytes: SESSION_LOG_MAX_BYTES,
    logQuota: quotas.usual('logMib'),
    lineLimits: LINE_LIMITS,
    recordings: recordings.valid,
    recordingLimits: limits(quotas, at),
  });
  readiness.record({ runnerId, browserFailed, isDraining, ...own });
  const answers = entries && {
    chunks: chunks.answers(stored.chunks, toAnswer),
    lines: lines.answers(stored.lines, toAnswer),
    recordings: recordings.answers(stored.recordings, ofRecording),
  };
  return { leaseIds: stored.leaseIds, answers, readIds: readers.ids() };
}

/** The valid entries, as the store takes them, and the answers to all of them. */
function checked<Entry extends { leaseId: string }, Row>(
  entries: readonly Entry[],
  field: keyof LogEntries,
  read: (entry: Entry) => Row,
) {
  if (entries.length > ENTRIES_MAX) throw invalidField(field, `must be at most ${ENTRIES_MAX}.`);
  const rows = entries.map((entry) => rowOf(entry, read));
  return {
    valid: rows.flatMap((one) => ('row' in one ? [one.row] : [])),
    answers<Stored>(
      stored: readonly Stored[],
      answerOf: (answer: Stored, leaseId: string) => LogAnswer,
    ): LogAnswer[] {
      const rest = stored.values();
      return rows.map((one, index) => {
        if ('fault' in one) return refusal(one.fault);
        const { leaseId } = must(entries[index], 'an entry');
        return answerOf(must(rest.next().value, 'its answer'), leaseId);
      });
    },
  };
}

function rowOf<Entry, Row>(
  entry: Entry,
  read: (entry: Entry) => Row,
): { row: Row } | { fault: Fault } {
  try {
    return { row: read(entry) };
  } catch (fault) {
    if (fault instanceof Fault && fault.reason === 'INVALID_FIELD') return { fault };
    throw fault;
  }
}

function checkedChunk(chunk: SessionLogChunk): SessionLogChunk {
  atMost('entries', chunk.entries.length, CHUNK_MAX_BYTES);
  atMost('count', chunk.count, CHUNK_MAX);
  atMost('size', chunk.size, LINES_MAX_BYTES);
  return chunk;
}

function checkedLines({ lines, ...rest }: LogLines) {
  atMost('lines', lines.length, RUNNER_BATCH_MAX);
  return { ...rest, lines: lines.map(toRow) };
}

function atMost(field: string, value: number, max: number): void {
  if (value > max) throw invalidField(field, `must be at most ${max}.`);
}

function toRow({ timestamp, message, level }: LogLines['lines'][number]) {
  atMost('level', level.length, LEVEL_MAX_CHARS);
  inRange('timestamp', timestamp, { max: Number.MAX_SAFE_INTEGER });
  return { at: timestamp, message, level };
}

function toAnswer(answer: EntryAnswer, leaseId: string): LogAnswer {
  if (answer === 'kept' || answer === 'full') return { ...STORED, full: answer === 'full' };
  if (answer === 'lost') return refusal(leaseLost(leaseId));
  return refusal({ reason: 'INVALID_FIELD', message: answer.fault });
}

function ofRecording(answer: RecordingAnswer, leaseId: string): LogAnswer {
  return answer === 'added' ? STORED : refusal(notAdded(answer, leaseId, 'receipt'));
}

function refusal({ reason, message }: Pick<Fault, 'reason' | 'message'>): LogAnswer {
  return { full: false, reason, message };
}

/** Source: runners.proto. */
function checkBrowser(browser: RunnerBrowser | undefined): void {
  if (browser === undefined) return;
  inRange('browser.product', browser.product.length, { max: 128, unit: ' characters' });
  for (const name of ['buildMs', 'startedAgoMs'] as const) {
    inRange(`browser.${name}`, browser[name], { max: Number.MAX_SAFE_INTEGER });
  }
}

/** Names of the machine's own programs; their length is bounded. */
function checkFacts({ version, sandbox, labels }: RunnerFacts): void {
  for (const [field, text] of Object.entries({ version, sandbox })) {
    inRange(field, text.length, FACT_LENGTH);
  }
  inRange('labels', labels.length, { max: RUNNER_LABELS_MAX, unit: ' labels' });
  for (const { name, value } of labels) {
    for (const text of [name, value]) inRange('labels', text.length, LABEL_LENGTH);
  }
}

/** For a registration, too. */
export function checkedFacts({ facts, browser }: Facts): Facts {
  checkBrowser(browser);
  if (facts !== undefined) checkFacts(facts);
  return { facts, browser };
}
