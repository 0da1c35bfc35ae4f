/**
 * The protocol log of one session on its way to core: what the recorder has, in numbered chunks of
 * compressed lines, in order, soon after it happened and before the session has ended. JSON is made
 * here, a little at a time, and zstd has threads of its own: clients wait for neither. Core
 * unreachable: the recorder holds what comes, up to its limit.
 */
import { setTimeout as sleep, setImmediate as yieldToOthers } from 'node:timers/promises';
import { promisify } from 'node:util';
import { constants, zstdCompress } from 'node:zlib';
import type { Log } from '../../../proto/common/log.ts';
import type { AppendSessionLogsRequest } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { openPages, type Pages } from '../../browser/cdp/pages.ts';
import type { Share } from '../../browser/cdp/thread-share.ts';
import { isPassing } from '../../leases/log-shipper.ts';
import type { OpenComponent } from '../session.ts';
import { lineOf } from './format.ts';
import { type Entry, openProtocolRecorder } from './recorder.ts';

/** Entries of a chunk, and bytes of their messages. Ours: one row of the store each. */
const CHUNK_MAX = 500;
const CHUNK_MAX_BYTES = 256 << 10;
/** Ours: an entry is readable about so long after it happened. */
const DELAY_MS = 700;
/** Ours: between two tries while core cannot be reached. */
const RETRY_MS = 1_000;
/** Ours: at the end of a session, which waits for its log. */
const LAST_WORDS_MS = 5_000;
/** Ours: entries are made into JSON for so long before others have their turn. */
const TURN_MS = 1;
/** The fastest but for the negative ones: a tenth remains, for a millisecond a chunk. */
const COMPRESSED = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

const compress = promisify(zstdCompress);

export type SessionLogs = {
  open: OpenComponent;
  /** An entry of ours for the session's user. Also before it is open. */
  warn(message: string): void;
};

export type SessionLogsOptions = {
  sessionId: string;
  leaseId: string;
  clients: Pick<Clients, 'runners'>;
  call: CallOptions;
  log: Log;
  now: () => number;
  /** Aborts when the lease is lost: then core takes nothing more. */
  lost: AbortSignal;
};

export function sessionLogs(options: SessionLogsOptions): SessionLogs {
  const { sessionId, log, now, lost } = options;
  const secretHeaders = new Set<string>();
  const over = new AbortController();
  let pages: Pages | undefined;
  let share: Share | undefined;
  let timer: NodeJS.Timeout | undefined;
  let sending: Promise<void> | undefined;
  let isDue = false;
  let number = 0;
  const recorder = openProtocolRecorder({
    secretHeaders,
    pageIdOf: (targetId) => pages?.idOf(targetId) ?? 0,
    onReady: (count, bytes) => arm(count >= CHUNK_MAX || bytes >= CHUNK_MAX_BYTES),
  });

  /** All that is ready now. */
  const pass = async (): Promise<void> => {
    let left = recorder.ready;
    while (left > 0 && !over.signal.aborted) {
      const entries = recorder.take(CHUNK_MAX, CHUNK_MAX_BYTES);
      left -= entries.length;
      const line = (entry: Entry): string => lineOf(entry, sessionId, secretHeaders);
      const lines = await linesOf(entries, (entry) => {
        return share === undefined ? line(entry) : share.spend(() => line(entry));
      });
      const chunk = { ...(await packed(lines)), number, count: entries.length };
      const { isTaken, isFull } = await deliver(chunk, { ...options, signal: over.signal });
      number += 1;
      if (isTaken && !isFull) continue;
      recorder.stop();
      return;
    }
  };
  /** A bug of ours ends the log, not the session. */
  const fail = (error: unknown): void => {
    log.error({ err: error }, 'a protocol log failed');
    recorder.stop();
  };
  const send = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    isDue = false;
    sending ??= pass()
      .catch(fail)
      .finally(() => {
        sending = undefined;
        if (recorder.ready > 0) arm(recorder.ready >= CHUNK_MAX);
      });
    return sending;
  };
  const arm = (isDueNow: boolean): void => {
    if (sending !== undefined || over.signal.aborted || isDue) return;
    if (timer !== undefined && !isDueNow) return;
    clearTimeout(timer);
    isDue = isDueNow;
    timer = setTimeout(() => void send(), isDue ? 0 : DELAY_MS);
  };

  return {
    warn: (message) => recorder.warn(message, now()),
    async open(chrome) {
      share = chrome.pipe.share;
      pages = await openPages(chrome);
      return {
        recorder,
        async close() {
          recorder.end();
          const patience = AbortSignal.any([lost, AbortSignal.timeout(LAST_WORDS_MS)]);
          const giveUp = (): void => over.abort();
          patience.addEventListener('abort', giveUp, { once: true });
          if (patience.aborted) giveUp();
          await sending;
          while (recorder.ready > 0 && !over.signal.aborted) await send();
          patience.removeEventListener('abort', giveUp);
          over.abort();
          recorder.stop();
        },
      };
    },
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

async function packed(lines: string): Promise<{ entries: Buffer; size: number }> {
  const bytes = Buffer.from(lines);
  return { entries: await compress(bytes, COMPRESSED), size: bytes.length };
}

type Chunk = Omit<AppendSessionLogsRequest, 'leaseId'>;

/** Tries until core has it, refuses it, or it is over. */
async function deliver(
  chunk: Chunk,
  { leaseId, clients, call, log, signal }: SessionLogsOptions & { signal: AbortSignal },
): Promise<{ isTaken: boolean; isFull: boolean }> {
  while (!signal.aborted) {
    try {
      const request = { leaseId, ...chunk };
      const { full } = await clients.runners.appendSessionLogs(request, { ...call, signal });
      return { isTaken: true, isFull: full };
    } catch (error) {
      if (signal.aborted) break;
      if (!isPassing(error)) {
        log.warn({ error: String(error) }, 'a protocol log was refused');
        break;
      }
      await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
    }
  }
  return { isTaken: false, isFull: false };
}
