/**
 * Sends the protocol log of one session to core: the recorder's entries, as numbered chunks of
 * compressed lines, while the session runs and before it has ended. JSON is made here in short
 * slices and zstd has threads of its own, so clients wait for neither. While core cannot be
 * reached, the recorder keeps the entries, up to its limit.
 */
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { promisify } from 'node:util';
import { constants, zstdCompress } from 'node:zlib';
import type { SessionLogChunk } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { openPages, type Pages } from '../../browser/cdp/pages.ts';
import type { Share } from '../../browser/cdp/thread-share.ts';
import { AWAY_MS } from '../../common/core-calls.ts';
import type { RunnerContext } from '../../common/runner-context.ts';
import type { Lease } from '../../leases/lease.ts';
import { type LogSource, openLogShipper } from '../../leases/log-shipper.ts';
import type { Sending } from '../../leases/reported.ts';
import type { OpenComponent } from '../session.ts';
import { lineOf } from './format.ts';
import { type Entry, openProtocolRecorder } from './recorder.ts';

/** Entries of a chunk, and bytes of their messages. Ours: one row of the store each. */
const CHUNK_MAX = 500;
const CHUNK_MAX_BYTES = 256 << 10;
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
  runner: Pick<RunnerContext, 'log' | 'now'>;
  lease: Pick<Lease, 'appendChunk' | 'pauseOf' | 'reportDeadline'>;
};

export function sessionLogs(sessionId: string, { runner, lease }: SessionLogDeps): SessionLogs {
  const { log, now } = runner;
  const secretHeaders = new Set<string>();
  let pages: Pages | undefined;
  let share: Share | undefined;
  let number = 0;
  const recorder = openProtocolRecorder({
    secretHeaders,
    pageIdOf: (targetId) => pages?.idOf(targetId) ?? 0,
    onReady: (count, bytes) => schedule(count >= CHUNK_MAX || bytes >= CHUNK_MAX_BYTES),
  });
  const source: LogSource = {
    count: () => recorder.ready,
    isDue: () => recorder.ready >= CHUNK_MAX,
    async next() {
      const entries = recorder.take(CHUNK_MAX, CHUNK_MAX_BYTES);
      const line = (entry: Entry): string => lineOf(entry, sessionId, secretHeaders);
      const lines = await linesOf(entries, (entry) => {
        return share === undefined ? line(entry) : share.spend(() => line(entry));
      });
      const chunk = { ...(await packed(lines)), number, count: entries.length };
      number += 1;
      return { count: entries.length, send: (how) => send(chunk, how) };
    },
    stop: () => recorder.stop(),
  };
  const pauseMs = (): number => lease.pauseOf(sessionId, DELAY_MS);
  const { schedule, flush } = openLogShipper(source, { pauseMs, log });
  const send = async (chunk: Chunk, how: Sending): Promise<void> => {
    if (await lease.appendChunk(chunk, how)) recorder.stop();
  };

  return {
    warn: (message) => recorder.warn(message, now()),
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
        },
      };
    },
  };
}

type Chunk = Omit<SessionLogChunk, 'leaseId'>;

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

async function packed(lines: string): Promise<{ entries: Buffer; size: number }> {
  const bytes = Buffer.from(lines);
  return { entries: await compress(bytes, COMPRESSED), size: bytes.length };
}
