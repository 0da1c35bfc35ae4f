/**
 * Parts of logs and recordings on their way to core, in the lease thread: they wait in the order of
 * their arrival, until a report takes them. A log has one entry here at a time, and so has a page,
 * so none takes a whole report.
 */
import type {
  LogAnswers,
  LogEntries,
  LogLines,
  PageRecording,
  SessionLogChunk,
} from '../../proto/gen/tabern/v1/runners.pb.ts';

/** A part of one log, or what is new of one page's recording. */
export type Entry =
  | { kind: 'chunk'; chunk: SessionLogChunk }
  | { kind: 'lines'; lines: LogLines }
  | { kind: 'recording'; recording: PageRecording };
/** `reason`: empty when the entry is stored. */
export type EntryAnswer = { full: boolean; reason: string; message: string };

/** In bytes, of one report. Ours: below the limit of a message, and sent within the interval. */
const REPORT_MAX_BYTES = 2 << 20;
/** Source: runners.proto. */
const ENTRIES_MAX = 512;
/** Of a line, beside its text. */
const LINE_BYTES = 32;
/** Of a part of a recording, beside its receipt. */
const PART_BYTES = 32;

export type Waiting = { id: number; entry: Entry };

export function openEntries() {
  const waiting = new Map<number, Waiting>();
  return {
    get size() {
      return waiting.size;
    },
    add: (one: Waiting) => void waiting.set(one.id, one),
    /** Its sender waits no more. */
    withdraw: (id: number) => void waiting.delete(id),
    /** Removes what fits into one report, at least one entry. */
    take(): Waiting[] {
      const taken: Waiting[] = [];
      let bytes = 0;
      for (const one of waiting.values()) {
        bytes += bytesOf(one.entry);
        if (taken.length > 0 && (bytes > REPORT_MAX_BYTES || taken.length === ENTRIES_MAX)) break;
        taken.push(one);
      }
      for (const { id } of taken) waiting.delete(id);
      return taken;
    },
  };
}

/** Undefined without entries. */
export function requestOf(taken: readonly Waiting[]): LogEntries | undefined {
  if (taken.length === 0) return undefined;
  const entries = taken.map(({ entry }) => entry);
  return {
    chunks: entries.flatMap((entry) => (entry.kind === 'chunk' ? entry.chunk : [])),
    lines: entries.flatMap((entry) => (entry.kind === 'lines' ? entry.lines : [])),
    recordings: entries.flatMap((entry) => (entry.kind === 'recording' ? entry.recording : [])),
  };
}

/** The answer to each entry, by its id. */
export function answersOf(
  taken: readonly Waiting[],
  answers: LogAnswers | undefined,
): [number, EntryAnswer][] {
  const rest = {
    chunk: answers?.chunks.values(),
    lines: answers?.lines.values(),
    recording: answers?.recordings.values(),
  };
  return taken.map(({ id, entry }) => {
    const next = rest[entry.kind]?.next().value;
    return [id, next ?? { full: false, reason: 'INTERNAL', message: 'core gave no answer' }];
  });
}

function bytesOf(entry: Entry): number {
  switch (entry.kind) {
    case 'chunk':
      return entry.chunk.entries.length;
    case 'lines':
      return sumOf(entry.lines.lines, ({ message }) => message.length * 2 + LINE_BYTES);
    case 'recording': {
      const { url, parts } = entry.recording;
      return url.length * 2 + sumOf(parts, ({ receipt }) => receipt.length + PART_BYTES);
    }
  }
}

function sumOf<T>(all: readonly T[], bytesOf: (one: T) => number): number {
  return all.reduce((sum, one) => sum + bytesOf(one), 0);
}
