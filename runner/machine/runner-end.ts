/**
 * The phases of a runner, from signals, `tabern drain` and the parent process:
 *   starting -> leasing -> draining -> ending -> stopped
 * draining: leases no more work. ending: sessions end, other work has 20 s. stopped: all work is
 * aborted, at once when the parent process has ended.
 */
import type { Log } from '../../proto/common/log.ts';
import { isDrainAsked, isEndAsked } from '../../proto/common/runner-ipc.ts';
import { DRAIN_MAX_S, openProcessEnd, type ProcessEnd } from '../../proto/drain/end.ts';
import { onAbort } from '../common/abort.ts';

/** Ours: below the 25 s after which `tabern serve` kills it. */
const ENDING_MS = 20_000;

export type RunnerEnd = ProcessEnd & {
  /** Aborts when no work may continue. */
  stopped: AbortSignal;
  /** The runner has registered and leases work. `browserFailure`: why no browser starts. */
  leases(browserFailure: () => string | undefined): void;
  /** Why it accepts no work, as a sentence. */
  unready(): string | undefined;
};

/** Listens to signals and to the parent process. */
export function openRunnerEnd(drainS: number, log: Log): RunnerEnd {
  const end = openProcessEnd({ drainS, log });
  const stopped = new AbortController();
  let failureOf: (() => string | undefined) | undefined;
  onAbort(end.ending, () => {
    setTimeout(() => stopped.abort(), ENDING_MS).unref();
  });
  if (process.send !== undefined) {
    process.on('message', (message: unknown) => {
      if (isDrainAsked(message)) end.drain(DRAIN_MAX_S, 'the parent process drains');
      if (isEndAsked(message)) end.end('the parent process ends');
    });
  }
  const parentEnded = (): void => {
    log.warn('the parent process has ended: ending all work');
    end.end('the parent process has ended');
    stopped.abort();
  };
  process.on('disconnect', parentEnded);
  if (process.send !== undefined && !process.connected) parentEnded();
  return {
    ...end,
    stopped: stopped.signal,
    leases(browserFailure) {
      failureOf = browserFailure;
    },
    unready() {
      if (end.draining.aborted) return 'The runner drains: it leases no more work.';
      if (failureOf === undefined) return 'The runner is starting.';
      const failure = failureOf();
      return failure === undefined ? undefined : `No browser starts: ${failure}`;
    },
  };
}
