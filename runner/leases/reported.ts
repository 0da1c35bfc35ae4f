/**
 * Parts of logs and recordings that this runner reports, as the main thread sees them: each is sent
 * to the lease thread and settles with core's answer. Logs that nobody reads are reported on ticks
 * of one clock, so that a report has the parts of many logs, and of recordings.
 */
import { Fault, REASONS, type Reason } from '../../proto/rpc/errors.ts';
import { onAbort } from '../common/abort.ts';
import type { Entry, EntryAnswer } from './entries.ts';
import type { ToThread } from './renewals.ts';

/** Ours: logs arrive some time after their tick, when they have been compressed. */
const OVER_A_TICK = 1.5;

export type Appending = {
  /**
   * Sends a part; resolves with whether its log is full. Rejects with a Fault of the entry, or the
   * signal's reason.
   */
  append(entry: Entry, how: Sending): Promise<boolean>;
  /**
   * The milliseconds to wait before the next part of this session, invocation or build: `ms`, or
   * longer while nobody reads its log and the runner holds much work, so that all are reported
   * together.
   */
  pauseOf(id: string, ms: number): number;
  /** The milliseconds for which a part may wait in the lease thread for the reports of others. */
  waitOf(id: string): number;
};

export type Sending = {
  /** Its work waits for the answer. */
  isUrgent: boolean;
  signal: AbortSignal;
  /** Sent with another report, after `ms` at the latest, or when `hurry` aborts. */
  patience?: { ms: number; hurry: AbortSignal };
};

export type Reported = Appending & {
  answered(id: number, answer: EntryAnswer): void;
  /** The ids of sessions, invocations and builds whose logs are being read. */
  setRead(ids: readonly string[]): void;
  /** No part can be sent any more. */
  endAll(why: string): void;
};

export function openReported(options: {
  send(message: ToThread): void;
  /** Between two ticks, in milliseconds. */
  pauseMs(): number;
}): Reported {
  const waiting = new Map<number, PromiseWithResolvers<boolean>>();
  let read: ReadonlySet<string> = new Set();
  let nextId = 0;
  let closed: string | undefined;

  return {
    async append(entry, { isUrgent, signal, patience }) {
      signal.throwIfAborted();
      if (closed !== undefined) throw new Fault('LEASE_LOST', closed);
      const id = nextId++;
      const answer = Promise.withResolvers<boolean>();
      waiting.set(id, answer);
      options.send({ type: 'entry', id, entry, isUrgent, waitMs: patience?.ms });
      using _hurrying = patience && onAbort(patience.hurry, () => options.send({ type: 'hurry' }));
      using _aborting = onAbort(signal, () => {
        options.send({ type: 'withdrawn', id });
        answer.reject(signal.reason);
      });
      try {
        return await answer.promise;
      } finally {
        waiting.delete(id);
      }
    },
    pauseOf(id, ms) {
      const tickMs = options.pauseMs();
      if (read.has(id) || tickMs <= ms) return ms;
      return tickMs - (performance.now() % tickMs);
    },
    waitOf: (id) => (read.has(id) ? 0 : options.pauseMs() * OVER_A_TICK),
    answered(id, { full, reason, message }) {
      if (reason === '') waiting.get(id)?.resolve(full);
      else waiting.get(id)?.reject(new Fault(reasonOf(reason), message));
    },
    setRead(ids) {
      read = new Set(ids);
    },
    endAll(why) {
      closed = why;
      for (const { reject } of waiting.values()) reject(new Fault('LEASE_LOST', why));
    },
  };
}

function reasonOf(text: string): Reason {
  return Object.hasOwn(REASONS, text) ? (text as Reason) : 'INTERNAL';
}
