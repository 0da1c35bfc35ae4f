/** The log of one invocation. The size limit applies here again: tenants control a host's count. */
import type { Log } from '../../proto/common/log.ts';
import { LINE_COST_BYTES, type LogLine, MARKER, RUN_MAX_BYTES } from '../host/messages.ts';
import type { Lease } from '../leases/lease.ts';
import { openLineLog } from '../leases/log-shipper.ts';

/** Ours: a line is readable this long after it was printed. */
const DELAY_MS = 100;

export type InvocationLog = {
  add(lines: readonly LogLine[]): void;
  /** Sends what waits; gives up for good when the deadline aborts or core refuses. */
  flush(deadline: AbortSignal): Promise<void>;
};

export function openInvocationLog(options: {
  lease: Pick<Lease, 'appendLogs' | 'pauseOf'>;
  /** Of the invocation. */
  id: string;
  log: Log;
}): InvocationLog {
  const { add, flush } = openLineLog({ ...options, delayMs: DELAY_MS });
  let bytes = 0;
  return {
    flush,
    add(lines) {
      const accepted: LogLine[] = [];
      for (const line of lines) {
        if (bytes > RUN_MAX_BYTES) break;
        bytes += Buffer.byteLength(line.message) + LINE_COST_BYTES;
        const isTooMuch = bytes > RUN_MAX_BYTES;
        accepted.push(isTooMuch ? { ...line, level: 'warn', message: MARKER } : line);
      }
      add(accepted);
    },
  };
}
