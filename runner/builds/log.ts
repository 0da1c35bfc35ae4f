/** The log of one build. A log that cannot be sent never fails its build. */
import type { Log } from '../../proto/common/log.ts';
import type { Lease } from '../leases/lease.ts';
import { openLineLog } from '../leases/log-shipper.ts';

/** Ours: soon enough to read along. */
const DELAY_MS = 200;
/** Of one line, in characters; the rest is cut. Ours. */
const LINE_MAX_CHARACTERS = 4_096;
/** Of one build. Ours: later lines are dropped, and the log says so. */
const LINES_MAX = 10_000;

export type Level = 'log' | 'info' | 'warn' | 'error' | 'debug';

export type BuildLog = {
  /** One line, or several when the message has line breaks. */
  line(level: Level, message: string): void;
  /** Sends what waits; gives up for good when the deadline aborts or core refuses. */
  flush(deadline: AbortSignal): Promise<void>;
};

export function openBuildLog(options: {
  lease: Pick<Lease, 'appendLogs'>;
  now: () => number;
  log: Log;
}): BuildLog {
  const { lease, now, log } = options;
  const { add, flush } = openLineLog({ lease, log, delayMs: DELAY_MS });
  let count = 0;

  function addLine(level: Level, message: string): void {
    if (count > LINES_MAX) return;
    const isLast = count === LINES_MAX;
    const text = isLast ? 'the log is too long: the rest is dropped' : message;
    count += 1;
    add([
      {
        level: isLast ? 'warn' : level,
        message: text.slice(0, LINE_MAX_CHARACTERS),
        timestamp: now(),
      },
    ]);
  }
  return {
    flush,
    line(level, message) {
      for (const one of message.split(/\r?\n/)) addLine(level, one);
    },
  };
}
