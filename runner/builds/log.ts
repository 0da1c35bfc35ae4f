/** The log of one build. A log that cannot be sent never fails its build. */
import type { Log } from '../../proto/common/log.ts';
import type { Lease } from '../leases/lease.ts';
import { openLineLog } from '../leases/log-shipper.ts';

/** Ours: short enough for an author who reads the log during the build. */
const DELAY_MS = 200;
/** Of one line, in characters; the rest is cut. Ours. */
const LINE_MAX_CHARACTERS = 4_096;
/** Of one build. Ours: later lines are dropped, and the last line reports that. */
const LINES_MAX = 10_000;
/** The same, of their text: core keeps no more, and all of it may wait here for core. */
const MAX_BYTES = 1 << 20;
const LAST = { level: 'warn', message: 'the log is too long: the rest is dropped' } as const;

export type Level = 'log' | 'info' | 'warn' | 'error' | 'debug';

export type BuildLog = {
  /** Adds one line, or several when the message has line breaks. */
  line(level: Level, message: string): void;
  /** Sends all waiting lines; gives up for good when the deadline aborts or core refuses. */
  flush(deadline: AbortSignal): Promise<void>;
};

export function openBuildLog(options: {
  lease: Pick<Lease, 'appendLogs' | 'pauseOf'>;
  /** Of the build. */
  id: string;
  now: () => number;
  log: Log;
}): BuildLog {
  const { lease, id, now, log } = options;
  const { add, flush } = openLineLog({ lease, id, log, delayMs: DELAY_MS });
  let count = 0;
  let bytes = 0;
  let isFull = false;
  return {
    flush,
    line(level, text) {
      for (const whole of text.split(/\r?\n/)) {
        if (isFull) return;
        const message = whole.slice(0, LINE_MAX_CHARACTERS);
        count += 1;
        bytes += Buffer.byteLength(message);
        isFull = count > LINES_MAX || bytes > MAX_BYTES;
        add([{ ...(isFull ? LAST : { level, message }), timestamp: now() }]);
      }
    },
  };
}
