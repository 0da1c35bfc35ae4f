/**
 * Decides when a session ends. Its time begins when its start was reported to core; then:
 *   waiting for a first client -> with clients <-> without -> ended, once
 * While it is held, because a person is asked to help, no client needs to be connected.
 * The first of these ends it: its release, its time limit, no client within connectMs, no client
 * for graceMs after the last one has left (without keepAlive), or for returnMs after a connection
 * has broken (resumeMs, when it may be resumed and that is longer), a lost Chrome, the end of the
 * runner, a lost lease.
 */
import type { CompleteSessionRequest_End } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { END_REASONS } from '../../proto/sessions/end-reasons.ts';
import { onAbort } from '../common/abort.ts';

export type SessionTimes = {
  /** The first client must connect within this time. */
  connectMs: number;
  /** A connection without a message for this time is closed. */
  idleMs: number;
  /** After the last client has left, another one must connect within this time. */
  graceMs: number;
  /** The same, after a connection that ended without a close frame: its client may come back. */
  returnMs: number;
  /** How long a resumable connection may be resumed after it has broken. */
  resumeMs: number;
};

/** Source of these two: proto/spec/sessions.md 5. */
export const CONNECT_MS = 5 * 60_000;
export const IDLE_MS = 10 * 60_000;
/** Source: proto/spec/resume.md 4. */
export const RESUME_MS = 60_000;

/** The end: for core, for the user, and for the clients that are still connected. */
export type End = { end: CompleteSessionRequest_End; reason: string; code: number };

/** WebSocket close codes: RFC 6455 7.4.1. */
const NORMAL = 1000;
const GOING_AWAY = 1001;
const UNEXPECTED = 1011;

const ends = {
  released: { end: 'COMPLETED', reason: END_REASONS.released, code: NORMAL },
  closed: { end: 'COMPLETED', reason: END_REASONS.left, code: NORMAL },
  late: { end: 'TIMED_OUT', reason: END_REASONS.timedOut, code: GOING_AWAY },
  unvisited: { end: 'TIMED_OUT', reason: END_REASONS.unvisited, code: GOING_AWAY },
  ending: { end: 'ERROR', reason: END_REASONS.shutdown, code: GOING_AWAY },
  // core has given this runner up, and says so
  lost: { end: 'ERROR', reason: END_REASONS.runnerLost, code: UNEXPECTED },
} as const satisfies Record<string, End>;

export type Lifetime = Disposable & {
  /** Its time begins; `leftMs` of it is left. */
  begin(leftMs: number): void;
  /**
   * The number of connected clients has changed. `lost`: one has not left, but its connection has
   * broken; when it is held, it may be resumed.
   */
  clients(count: number, lost?: 'broken' | 'held'): void;
  /** Whether it waits for a person. */
  hold(isHeld: boolean): void;
  /** A viewer has connected, which counts as a first client. */
  visited(): void;
  /** Whether a client or a viewer has ever connected. */
  readonly wasVisited: boolean;
  /** Its Chrome ended by itself. */
  crashed(reason: string): void;
  /** Aborts when it ends. */
  done: AbortSignal;
  ended: Promise<End>;
};

export function openLifetime(options: {
  keepAlive: boolean;
  times: Omit<SessionTimes, 'idleMs'>;
  /** Each ends the session: its user's request, the end of the runner, the loss of its lease. */
  signals: Record<'released' | 'ending' | 'lost', AbortSignal>;
}): Lifetime {
  const { keepAlive, times, signals } = options;
  const { promise: ended, resolve } = Promise.withResolvers<End>();
  const done = new AbortController();
  const timers: { time?: NodeJS.Timeout; first?: NodeJS.Timeout; grace?: NodeJS.Timeout } = {};
  let wasVisited = false;
  let hasBegun = false;
  let isHeld = false;
  let connected = 0;
  let hadClient = false;
  /** Until then a lost client may come back. On the monotonic clock. */
  let awaitedUntil = 0;
  const stop = (): void => {
    for (const timer of Object.values(timers)) clearTimeout(timer);
  };
  const finish = (end: End): void => {
    stop();
    resolve(end); // the first one counts
    done.abort(new Error(end.reason));
  };
  const visited = (): void => {
    wasVisited = true;
    clearTimeout(timers.first);
  };
  /** Starts the time that runs without a client; `graceMs` is for one after others. */
  const watchClients = (graceMs: number): void => {
    clearTimeout(timers.grace);
    clearTimeout(timers.first);
    if (connected > 0 || isHeld || done.signal.aborted) return;
    if (!wasVisited && hasBegun) {
      timers.first = setTimeout(() => finish(ends.unvisited), times.connectMs);
    } else if (hadClient && !keepAlive) {
      timers.grace = setTimeout(() => finish(ends.closed), graceMs);
    }
  };
  const listening = new DisposableStack();
  for (const name of ['released', 'ending', 'lost'] as const) {
    listening.use(onAbort(signals[name], () => finish(ends[name])));
  }
  return {
    ended,
    done: done.signal,
    visited,
    get wasVisited() {
      return wasVisited;
    },
    begin(leftMs) {
      if (done.signal.aborted) return;
      hasBegun = true;
      timers.time = setTimeout(() => finish(ends.late), leftMs);
      if (!wasVisited) watchClients(times.graceMs);
    },
    clients(count, lost) {
      visited();
      const now = performance.now();
      const { returnMs, resumeMs } = times;
      if (lost === 'held') awaitedUntil = now + Math.max(returnMs, resumeMs);
      else if (lost === 'broken') awaitedUntil = Math.max(awaitedUntil, now + returnMs);
      else if (count > connected) awaitedUntil = 0; // it has come back
      connected = count;
      hadClient = true;
      watchClients(Math.max(times.graceMs, awaitedUntil - now));
    },
    hold(isHeldNow) {
      if (isHeldNow === isHeld) return;
      isHeld = isHeldNow;
      watchClients(times.connectMs); // a client that has left looks for the end now and then
    },
    crashed: (reason) => finish({ end: 'ERROR', reason, code: UNEXPECTED }),
    [Symbol.dispose]() {
      stop();
      listening.dispose();
    },
  };
}
