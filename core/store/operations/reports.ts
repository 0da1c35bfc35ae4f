/**
 * The report of a runner: renewals, and parts of logs and recordings of all its work, in one
 * transaction. An entry is checked before it is written, so one that is refused has changed
 * nothing.
 */
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Within } from '../types/files.ts';
import type { LeaseOps } from '../types/leases.ts';
import type { NewRecording, RecordingAnswer, RecordingOps } from '../types/recordings.ts';
import type { EntryAnswer, ReportOps } from '../types/sessions.ts';
import type { HeldSessionLog, logAppends } from './logs.ts';
import type { InSteps, Steps } from './steps.ts';

type Parts = InSteps<Pick<LeaseOps, 'renewLeases'> & Pick<RecordingOps, 'addRecording'>>;

const MIB = 1 << 20;

export function reportOperations(
  { renewLeases, addRecording }: Parts,
  appends: ReturnType<typeof logAppends>,
): InSteps<ReportOps> {
  return {
    *reportRunner({ chunks, lines, recordings, recordingLimits, ...report }) {
      const { chunksMaxBytes, logQuota, lineLimits, ...renewal } = report;
      const { at } = renewal;
      const { kinds } = logQuota;
      const { endedAfter } = recordingLimits;
      // no renewal changes what an append reads
      const ofChunks = chunks.length > 0 && appends.chunks(idsOf(chunks), { kinds, endedAfter });
      const ofLines = lines.length > 0 && appends.lines(idsOf(lines));
      const leaseIds = yield* renewLeases(renewal);
      const answers: Record<'chunks' | 'lines', EntryAnswer[]> = { chunks: [], lines: [] };
      const withinOf = ({ quotaMib }: HeldSessionLog): Within =>
        quotaMib === null ? logQuota : { ...logQuota, maxBytes: quotaMib * MIB };
      for (const chunk of chunks) {
        if (!ofChunks) break;
        const wanted = { ...chunk, maxBytes: chunksMaxBytes, at };
        answers.chunks.push(yield* answerOf(ofChunks.append(wanted, withinOf)));
      }
      for (const one of lines) {
        if (!ofLines) break;
        const answer = yield* answerOf(ofLines.append({ ...one, ...lineLimits }));
        answers.lines.push(answer === true ? 'kept' : answer === false ? 'lost' : answer);
      }
      const added: RecordingAnswer[] = [];
      for (const [index, one] of inOneOrder(recordings)) {
        added[index] = yield* addRecording({ ...one, ...recordingLimits, at });
      }
      return { leaseIds, ...answers, recordings: added };
    },
  };
}

/** With their places. What a project stores is counted with a blob: reports meet in these rows. */
function inOneOrder(recordings: readonly NewRecording[]): [number, NewRecording][] {
  const projectOf = ({ parts }: NewRecording) => parts[0]?.blob.projectId ?? '';
  return [...recordings.entries()].sort(([, one], [, other]) => {
    return projectOf(one).localeCompare(projectOf(other));
  });
}

function idsOf(entries: readonly { leaseId: string }[]): string[] {
  return [...new Set(entries.map(({ leaseId }) => leaseId))];
}

function* answerOf<T>(entry: Steps<T>): Steps<T | { fault: string }> {
  try {
    return yield* entry;
  } catch (error) {
    if (error instanceof Fault && error.reason === 'INVALID_FIELD') return { fault: error.message };
    throw error;
  }
}
