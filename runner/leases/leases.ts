/**
 * The leases that this runner holds, as the main thread sees them. The lease thread renews them
 * (renewals.ts); the work of a lost one is aborted. A held lease may be released by a user
 * (runner/sessions/server/notifications.ts): it is still held until its work has ended. held ->
 * dropped
 * | lost.
 */
import inspector from 'node:inspector';
import type { Log } from '../../proto/common/log.ts';
import { onAbort } from '../common/abort.ts';
import type { FromThread, ToThread } from './renewals.ts';

/** In milliseconds, between two beats of the main thread. stall.ts says what they are for. */
const BEAT_MS = 1_000;

export type Ends = {
  /** Aborts when the lease is lost. */
  lost: AbortSignal;
  /** Aborts when a user wants its work to end. */
  released: AbortSignal;
};

/** How a piece of work hears of its lease. */
export type HeldLease = Ends & {
  /**
   * Settles when core has acknowledged that it came, or when it is lost. Until then it may be
   * prepared, with what nobody sees: another runner may be given it.
   */
  acknowledged: Promise<void>;
};

export type Leases = AsyncDisposable & {
  /** Register it, then `take` it; dispose when its work has ended. */
  hold(leaseId: string): Disposable & HeldLease;
  held(): number;
  /** These are all whose work shall end, held or on their way here. */
  release(leaseIds: readonly string[]): void;
  /**
   * The lease thread renews these from now on, and tells core that they have come; `taken` of each
   * says how it went. Those that core does not know any more, or could not be told of, are lost:
   * it offers again what it has not heard of.
   */
  acknowledge(leaseIds: string[]): void;
};

/** The lease thread. Dispose ends it. */
export type LeaseThread = AsyncDisposable & { send(message: ToThread): void };

export type LeaseListener = {
  receive(message: FromThread): void;
  /** The thread ended by itself. */
  ended(error: Error): void;
};

type Lease = {
  lost: AbortController;
  released: AbortController;
  acknowledged: PromiseWithResolvers<void>;
  isAcknowledged: boolean;
};

export function openLeases(options: {
  openThread(listener: LeaseListener): LeaseThread;
  log: Log;
  isBrowserFailing(): boolean;
  /** A newer instance of this runner has registered. */
  onSuperseded(): void;
  /** No lease can be renewed any more. */
  onFailed(error: Error): void;
  /** Aborts when the runner has no time left: what core has not acknowledged by then is lost. */
  stopped: AbortSignal;
}): Leases {
  const { log } = options;
  const held = new Map<string, Lease>();
  let released: ReadonlySet<string> = new Set();
  let over: string | undefined;

  const lose = (id: string, why: string): void => {
    const lease = held.get(id);
    if (lease === undefined) return;
    log.warn({ leaseId: id, why }, 'a lease is lost');
    lease.lost.abort(new Error(`the lease is lost: ${why}`));
    held.delete(id);
    lease.acknowledged.resolve(); // whatever core is still told of the others
  };
  /** For good: no lease can be held any more. */
  const loseAll = (why: string): void => {
    over = why;
    for (const id of held.keys()) lose(id, why);
  };
  const receive = (message: FromThread): void => {
    switch (message.type) {
      case 'acknowledged':
        for (const id of message.leaseIds) {
          const lease = held.get(id);
          if (lease === undefined) continue;
          lease.isAcknowledged = true;
          lease.acknowledged.resolve();
        }
        break;
      case 'lost':
        lose(message.leaseId, message.why);
        break;
      case 'superseded':
        loseAll('a newer runner has taken over');
        options.onSuperseded();
        break;
    }
  };
  const ended = (error: Error): void => {
    loseAll('the lease thread ended');
    options.onFailed(error);
  };
  const thread = options.openThread({ receive, ended });
  const beat = (): void => {
    const isInspected = inspector.url() !== undefined;
    thread.send({ type: 'beat', isBrowserFailing: options.isBrowserFailing(), isInspected });
  };
  beat();
  const beating = setInterval(beat, BEAT_MS).unref();
  const stopping = onAbort(options.stopped, () => {
    for (const [id, { isAcknowledged: isTaken }] of held) if (!isTaken) lose(id, 'the runner ends');
  });

  return {
    held: () => held.size,
    acknowledge: (leaseIds) => thread.send({ type: 'acquired', leaseIds }),
    hold(leaseId) {
      const lease = {
        lost: new AbortController(),
        released: new AbortController(),
        acknowledged: Promise.withResolvers<void>(),
        isAcknowledged: false,
      };
      held.set(leaseId, lease);
      if (released.has(leaseId)) lease.released.abort(new Error('released'));
      if (over !== undefined) lose(leaseId, over);
      return {
        lost: lease.lost.signal,
        released: lease.released.signal,
        acknowledged: lease.acknowledged.promise,
        [Symbol.dispose]() {
          if (held.delete(leaseId)) thread.send({ type: 'dropped', leaseId });
        },
      };
    },
    release(leaseIds) {
      released = new Set(leaseIds);
      for (const id of leaseIds) held.get(id)?.released.abort(new Error('released'));
    },
    async [Symbol.asyncDispose]() {
      clearInterval(beating);
      stopping[Symbol.dispose]();
      await thread[Symbol.asyncDispose]();
    },
  };
}
