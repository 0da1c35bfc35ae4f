/**
 * Sends the protocol log of one session to core: the recorder's entries, as numbered chunks of
 * compressed lines, while the session runs and before it has ended. JSON is made here in short
 * slices and zstd has threads of its own, so clients wait for neither. While core takes less than
 * is recorded, chunks wait in files (spool.ts). When these have no room, entries wait in the
 * recorder, up to its limit.
 */
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { promisify } from 'node:util';
import { constants, zstdCompress } from 'node:zlib';
import type { Shares } from '../../../proto/sharing/shares.ts';
import { openPages, type Pages } from '../../browser/cdp/pages.ts';
import type { Share } from '../../browser/cdp/thread-share.ts';
import { AWAY_MS } from '../../common/core-calls.ts';
import type { RunnerContext } from '../../common/runner-context.ts';
import type { Lease } from '../../leases/lease.ts';
import { type LogSource, openLogShipper } from '../../leases/log-shipper.ts';
import type { OpenComponent } from '../session.ts';
import { lineOf } from './format.ts';
import { type Entry, openProtocolRecorder, type ProtocolRecorder } from './recorder.ts';
import { type Packed, Spool } from './spool.ts';

/** Entries of a chunk, and bytes of their messages. Ours: one row of the store each. */
const CHUNK_MAX = 500;
const CHUNK_MAX_BYTES = 256 << 10;
/** Of entries in memory, above which chunks are stored on disk. Ours: eight chunks. */
const MEMORY_MAX_BYTES = 2 << 20;
/** Ours: an entry is readable about so long after it was recorded, when somebody reads the log. */
const DELAY_MS = 700;
/** Ours: JSON is made for so long before the thread is yielded. */
const TURN_MS = 1;
/** The fastest but for the negative ones: a tenth remains, for a millisecond a chunk. */
const COMPRESSED = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

const compress = promisify(zstdCompress);

type SessionLogs = {
  open: OpenComponent;
  /** Adds an entry for the session's user, also before the log is open. */
  warn(message: string): void;
};

type SessionLogDeps = {
  runner: Pick<RunnerContext, 'log' | 'now' | 'runDir'>;
  lease: Pick<Lease, 'appendChunk' | 'pauseOf' | 'reportDeadline'>;
  /** Of the runner, for logs that wait on disk (spool.ts). */
  space: Shares;
};

export function sessionLogs(
  { sessionId, projectId }: { sessionId: string; projectId: string },
  { runner, lease, space }: SessionLogDeps,
): SessionLogs {
  const { log, now, runDir } = runner;
  const secretHeaders = new Set<string>();
  let pages: Pages | undefined;
  let share: Share | undefined;
  const recorder = openProtocolRecorder({
    secretHeaders,
    pageIdOf: (targetId) => pages?.idOf(targetId) ?? 0,
    onReady(count, bytes) {
      schedule(isDue(count, bytes));
      if (bytes > MEMORY_MAX_BYTES) {
        void spool.fill(() => isDue(recorder.ready, recorder.bytes));
      }
    },
  });
  const warn: SessionLogs['warn'] = (message) => recorder.warn(message, now());
  const lineOfEntry = (entry: Entry): string => {
    const line = () => lineOf(entry, sessionId, secretHeaders);
    return share === undefined ? line() : share.spend(line);
  };
  const spool = new Spool({
    runDir,
    projectId,
    space,
    log,
    make() {
      const entries = recorder.take(CHUNK_MAX, CHUNK_MAX_BYTES);
      return { count: entries.length, packed: linesOf(entries, lineOfEntry).then(packed) };
    },
    onLost: (count) => warn(`${count} entries were lost on the disk of the runner`),
  });
  const stop = (): void => {
    recorder.stop();
    void spool.close();
  };
  const source = sourceOf({ spool, recorder, lease, stop });
  const pauseMs = (): number => lease.pauseOf(sessionId, DELAY_MS);
  const { schedule, flush } = openLogShipper(source, { pauseMs, log });

  return {
    warn,
    async open(chrome) {
      share = chrome.pipe.share;
      pages = await openPages(chrome);
      return {
        recorder,
        // last: the other components and the save of the context may still warn
        async closeLast() {
          recorder.end();
          using deadline = lease.reportDeadline();
          await flush(AbortSignal.any([deadline.signal, AbortSignal.timeout(AWAY_MS)]));
          recorder.stop();
          await spool.close();
        },
      };
    },
  };
}

function isDue(count: number, bytes: number): boolean {
  return count >= CHUNK_MAX || bytes >= CHUNK_MAX_BYTES;
}

/** The chunks of a log, numbered from 0. */
function sourceOf(options: {
  spool: Pick<Spool, 'count' | 'next'>;
  recorder: Pick<ProtocolRecorder, 'ready'>;
  lease: Pick<Lease, 'appendChunk'>;
  stop(): void;
}): LogSource {
  const { spool, recorder, lease, stop } = options;
  let next = 0;
  return {
    count: () => spool.count + recorder.ready,
    isDue: () => spool.count + recorder.ready >= CHUNK_MAX,
    async next() {
      const chunk = { ...(await spool.next()), number: next };
      next += 1;
      return {
        count: chunk.count,
        async send(how) {
          if (await lease.appendChunk(chunk, how)) stop();
        },
      };
    },
    stop,
  };
}

async function linesOf(
  entries: readonly Entry[],
  lineOfEntry: (entry: Entry) => string,
): Promise<string> {
  const lines: string[] = [];
  let since = performance.now();
  for (const entry of entries) {
    lines.push(lineOfEntry(entry));
    if (performance.now() - since < TURN_MS) continue;
    await yieldToOthers();
    since = performance.now();
  }
  return lines.join('\n');
}

async function packed(lines: string): Promise<Packed> {
  const bytes = Buffer.from(lines);
  return { entries: await compress(bytes, COMPRESSED), size: bytes.length };
}
