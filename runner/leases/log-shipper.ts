/**
 * Sends a log to core while its work runs: batches in order, one at a time, soon after their
 * entries were added. A batch is retried while core cannot be reached. A batch that core refuses
 * ends the log, never the work.
 */
import { RUNNER_BATCH_MAX } from '../../proto/common/limits.ts';
import type { Log } from '../../proto/common/log.ts';
import { retry } from '../../proto/common/retry.ts';
import type { LogLines_Line } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { onAbort, until } from '../common/abort.ts';
import { isRepeatable } from '../common/core-calls.ts';
import type { Lease } from './lease.ts';
import type { Sending } from './reported.ts';

/** Ours: between two attempts while core cannot be reached. */
const PAUSES = { firstMs: 1_000, maxMs: 1_000 };

/** The entries that wait to be sent. */
export type LogSource = {
  count(): number;
  /** Removes and returns the next batch. */
  next(): Promise<Batch>;
  /** Whether to send without the delay. */
  isDue?(): boolean;
  /** Called when no more batches will be sent. */
  stop(): void;
};

/** Some entries, and how to send them: a repeated batch has the same numbers. */
export type Batch = { count: number; send(how: Sending): Promise<void> };

export type LogShipper = {
  /** Call after adding entries: sends them after the delay, or at once if they are due. */
  schedule(isDue: boolean): void;
  /** Sends all waiting entries; gives up for good when the deadline aborts. Never rejects. */
  flush(deadline: AbortSignal): Promise<void>;
};

export function openLogShipper(
  source: LogSource,
  { pauseMs, log }: { pauseMs: () => number; log: Log },
): LogShipper {
  const closed = new AbortController();
  const { signal } = closed;
  let timer: NodeJS.Timeout | undefined;
  let isTimerDue = false;
  let sending: Promise<void> | undefined;
  /** The end of the work waits for the log. */
  let isUrgent = false;

  /** Sends the entries that wait now; later entries are for the next call. */
  const sendAll = async (): Promise<void> => {
    for (let left = source.count(); left > 0 && source.count() > 0 && !signal.aborted; ) {
      const { count, send } = await until(source.next(), signal); // it may wait for a disk
      left -= count;
      await retry(() => send({ signal, isUrgent }), {
        ...PAUSES,
        signal,
        isRetryable: isRepeatable,
      });
    }
  };
  const stop = (error: unknown): void => {
    source.stop();
    if (signal.aborted) return;
    if (error instanceof Fault) log.warn({ error: String(error) }, 'core refused a log');
    else log.error({ err: error }, 'sending a log failed');
    closed.abort();
  };
  const clear = (): void => {
    clearTimeout(timer);
    timer = undefined;
    isTimerDue = false;
  };
  const start = (): Promise<void> => {
    clear();
    sending ??= sendAll()
      .catch(stop)
      .finally(() => {
        sending = undefined;
        if (source.count() > 0) schedule(source.isDue?.() ?? false);
      });
    return sending;
  };
  const schedule = (isDue: boolean): void => {
    if (sending !== undefined || signal.aborted || isTimerDue) return;
    if (timer !== undefined && !isDue) return;
    clear();
    isTimerDue = isDue;
    timer = setTimeout(() => void start(), isDue ? 0 : pauseMs());
  };
  return {
    schedule,
    async flush(deadline) {
      using _deadline = onAbort(deadline, () => closed.abort());
      isUrgent = true;
      clear();
      await sending;
      while (source.count() > 0 && !signal.aborted) await start();
      clear();
      isUrgent = false;
    },
  };
}

export type LineLog = Pick<LogShipper, 'flush'> & {
  add(lines: readonly LogLines_Line[]): void;
};

/** The lines of a lease's log, numbered from 0. */
export function openLineLog(options: {
  lease: Pick<Lease, 'appendLogs' | 'pauseOf'>;
  /** Of the invocation or build. */
  id: string;
  /** A line is readable this long after it was printed, when somebody reads the log. */
  delayMs: number;
  log: Log;
}): LineLog {
  const { lease, id, delayMs, log } = options;
  let waiting: LogLines_Line[] = [];
  let first = 0;
  const source: LogSource = {
    count: () => waiting.length,
    async next() {
      const lines = waiting.slice(0, RUNNER_BATCH_MAX);
      waiting = waiting.slice(RUNNER_BATCH_MAX);
      const number = first;
      first += lines.length;
      const send = (how: Sending) => lease.appendLogs(number, lines, how);
      return { count: lines.length, send };
    },
    stop() {
      waiting = [];
    },
  };
  const { schedule, flush } = openLogShipper(source, {
    pauseMs: () => lease.pauseOf(id, delayMs),
    log,
  });
  return {
    flush,
    add(lines) {
      waiting.push(...lines);
      schedule(false);
    },
  };
}
