/**
 * The end of a process, in phases: running -> draining -> ending. A signal or POST /drain begins
 * the drain; its time, a second signal or the end of its work ends it. With a time of 0 the first
 * signal ends the process as the second one does otherwise.
 */
import { once } from 'node:events';
import type { Log } from '../common/log.ts';

/** Ours: Ctrl-C under npm is received twice; signals within this interval count once. */
export const SAME_SIGNAL_MS = 500;
/** Ours: a day, the longest time of a session. */
export const DRAIN_MAX_S = 86_400;

export type ProcessEnd = {
  /** Aborts when no new work is accepted; its work continues. */
  draining: AbortSignal;
  /** Aborts when its work has no time left. */
  ending: AbortSignal;
  /** The seconds of a drain that is requested without a time. */
  drainS: number;
  /** Begins to drain; a drain that has begun keeps its time. */
  drain(seconds: number, why: string): void;
  /** Ends the work, draining or not. */
  end(why: string): void;
};

/** Listens for SIGTERM and SIGINT. `onFurther`: another signal after `ending` has aborted. */
export function openProcessEnd(options: {
  /** Seconds of a drain that a signal begins; 0 without a drain. */
  drainS: number;
  log: Log;
  onFurther?: () => void;
}): ProcessEnd {
  const { drainS, log, onFurther = () => {} } = options;
  const draining = new AbortController();
  const ending = new AbortController();
  let signalAt = -Infinity;
  let signals = 0;

  const end = (why: string): void => {
    if (ending.signal.aborted) return;
    log.info({ why }, 'ending');
    draining.abort();
    ending.abort();
  };
  const drain = (seconds: number, why: string): void => {
    if (draining.signal.aborted) return;
    if (seconds === 0) {
      end(why);
      return;
    }
    log.info({ why, seconds }, 'draining: no new work is accepted');
    draining.abort();
    setTimeout(() => end('the time of the drain is over'), seconds * 1_000).unref();
  };
  const receive = (signal: NodeJS.Signals): void => {
    const at = performance.now();
    if (at - signalAt <= SAME_SIGNAL_MS) return;
    signalAt = at;
    signals += 1;
    if (signals === 1) drain(drainS, signal);
    else if (ending.signal.aborted) onFurther();
    else end(signal);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, receive);
  return { draining: draining.signal, ending: ending.signal, drainS, drain, end };
}

/** Settles when the signal aborts. */
export async function aborted(signal: AbortSignal): Promise<undefined> {
  if (!signal.aborted) await once(signal, 'abort');
}
