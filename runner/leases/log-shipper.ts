/**
 * The log of one lease on its way to core: lines in order, numbered, in batches, soon after they
 * were printed. The limit of a run holds here again, for a host's own count is a tenant's word.
 * Core unreachable: what waits is sent later.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../proto/common/log.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import { LINE_COST_BYTES, MARKER, RUN_MAX_BYTES } from '../host/limits.ts';
import type { LogLine } from '../host/messages.ts';

/** Source: AppendLogsRequest.lines. */
const BATCH_MAX_LINES = 1_000;
/** Ours: a line is readable this long after it was printed. */
const DELAY_MS = 100;
/** Ours: between two tries while core cannot be reached. */
const RETRY_MS = 1_000;

export type RunLog = {
  add(lines: readonly LogLine[]): void;
  /** Sends what waits, at the end; gives up for good when `patience` aborts or core refuses. */
  flush(patience: AbortSignal): Promise<void>;
};

export function openRunLog(options: {
  leaseId: string;
  clients: Pick<Clients, 'runners'>;
  call: CallOptions;
  log: Log;
}): RunLog {
  const { leaseId, clients, call, log } = options;
  let waiting: LogLine[] = [];
  let first = 0;
  let bytes = 0;
  let isRefused = false;
  let sending: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  const over = new AbortController();
  const { signal } = over;

  const send = async (): Promise<void> => {
    while (waiting.length > 0 && !isRefused && !signal.aborted) {
      const lines = waiting.slice(0, BATCH_MAX_LINES);
      try {
        await clients.runners.appendLogs({ leaseId, first, lines }, { ...call, signal });
        waiting = waiting.slice(lines.length);
        first += lines.length;
      } catch (error) {
        if (signal.aborted) return;
        isRefused = !isPassing(error);
        if (isRefused) log.warn({ leaseId, error: String(error) }, 'log lines were refused');
        else await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
      }
    }
  };
  const start = (): Promise<void> => {
    sending ??= send().finally(() => {
      sending = undefined;
    });
    return sending;
  };

  return {
    add(lines) {
      for (const line of lines) {
        if (bytes > RUN_MAX_BYTES) break;
        bytes += Buffer.byteLength(line.message) + LINE_COST_BYTES;
        waiting.push(bytes > RUN_MAX_BYTES ? { ...line, level: 'warn', message: MARKER } : line);
      }
      timer ??= setTimeout(() => {
        timer = undefined;
        void start();
      }, DELAY_MS);
    },
    async flush(patience) {
      clearTimeout(timer);
      const giveUp = (): void => over.abort();
      patience.addEventListener('abort', giveUp, { once: true });
      if (patience.aborted) giveUp();
      await sending; // may have been under way since before: it ends with the patience too
      await start();
      patience.removeEventListener('abort', giveUp);
    },
  };
}

/** Whether the same call may succeed later. */
export function isPassing(error: unknown): boolean {
  return error instanceof Fault && (error.row.retry === 'yes' || error.reason === 'DEADLINE');
}
