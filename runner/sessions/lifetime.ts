/**
 * When a session ends. Its time begins when core knows that it runs; then:
 *   waiting for a first client -> with clients <-> without -> ended, once
 * Whatever comes first ends it: its release, its time, nobody came, the last client has left and
 * did not come back (not with keepAlive), its Chrome is lost, the runner ends, its lease is lost.
 */
import type { CompleteSessionRequest_End } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { onAbort } from '../common/abort.ts';

export type SessionTimes = {
  /** For the first client to come. */
  connectMs: number;
  /** A connection over which nothing passes for so long is closed. */
  idleMs: number;
  /** For a client to come back after the last one has left. */
  graceMs: number;
};

/** Source of both: proto/spec/sessions.md 5. */
export const CONNECT_MS = 5 * 60_000;
export const IDLE_MS = 10 * 60_000;

/** How it ended: for core, for its user, and for the clients that are still connected. */
export type End = { end: CompleteSessionRequest_End; reason: string; code: number };

/** WebSocket close codes: RFC 6455 7.4.1. */
const NORMAL = 1000;
const GOING_AWAY = 1001;
const UNEXPECTED = 1011;

const ends = {
  released: { end: 'COMPLETED', reason: 'the session was released', code: NORMAL },
  left: { end: 'COMPLETED', reason: 'its last client has left', code: NORMAL },
  late: { end: 'TIMED_OUT', reason: 'session timed out', code: GOING_AWAY },
  unvisited: { end: 'TIMED_OUT', reason: 'nobody connected in time', code: GOING_AWAY },
  ending: { end: 'ERROR', reason: 'the service is shutting down', code: GOING_AWAY },
  lost: { end: 'ERROR', reason: 'the session’s lease was lost', code: GOING_AWAY },
} as const satisfies Record<string, End>;

export type Lifetime = Disposable & {
  /** Its time begins: so much is left of it. */
  begin(leftMs: number): void;
  /** Clients have come or left: so many there are. */
  clients(count: number): void;
  /** Somebody has come who is no client: it is not waited for a first any more. */
  visited(): void;
  /** Whether anybody ever came. */
  readonly wasVisited: boolean;
  /** Its Chrome ended by itself, for a reason that says so. */
  crashed(reason: string): void;
  /** Aborts when it ends. */
  done: AbortSignal;
  ended: Promise<End>;
};

export function openLifetime(options: {
  keepAlive: boolean;
  times: Pick<SessionTimes, 'connectMs' | 'graceMs'>;
  /** Aborts when its user wants it to end. */
  released: AbortSignal;
  /** Aborts when the runner takes no more work. */
  ending: AbortSignal;
  /** Aborts when the lease is lost. */
  lost: AbortSignal;
}): Lifetime {
  const { keepAlive, times } = options;
  const { promise: ended, resolve } = Promise.withResolvers<End>();
  const over = new AbortController();
  const timers: { time?: NodeJS.Timeout; first?: NodeJS.Timeout; grace?: NodeJS.Timeout } = {};
  let wasVisited = false;
  const stop = (): void => {
    for (const timer of Object.values(timers)) clearTimeout(timer);
  };
  const finish = (end: End): void => {
    stop();
    resolve(end); // the first one counts
    over.abort(new Error(end.reason));
  };
  const visited = (): void => {
    wasVisited = true;
    clearTimeout(timers.first);
  };
  using listening = new DisposableStack();
  for (const name of ['released', 'ending', 'lost'] as const) {
    listening.use(onAbort(options[name], () => finish(ends[name])));
  }
  const listened = listening.move();
  return {
    ended,
    done: over.signal,
    visited,
    get wasVisited() {
      return wasVisited;
    },
    begin(leftMs) {
      if (over.signal.aborted) return;
      timers.time = setTimeout(() => finish(ends.late), leftMs);
      if (!wasVisited) timers.first = setTimeout(() => finish(ends.unvisited), times.connectMs);
    },
    clients(count) {
      visited();
      clearTimeout(timers.grace);
      if (count > 0 || keepAlive || over.signal.aborted) return;
      timers.grace = setTimeout(() => finish(ends.left), times.graceMs);
    },
    crashed: (reason) => finish({ end: 'ERROR', reason, code: UNEXPECTED }),
    [Symbol.dispose]() {
      stop();
      listened.dispose();
    },
  };
}
