/**
 * The leases that this runner holds, as the main thread sees them. It acknowledges them itself, as
 * work waits for that; the lease thread renews them (renewals.ts), so that no work of this thread
 * delays a renewal. The work of a lost lease is aborted. A released lease
 * (runner/sessions/server/notifications.ts) is held until its work has ended.
 *   held -> reporting -> dropped;  held, reporting -> lost
 */
import inspector from 'node:inspector';
import type { Log } from '../../proto/common/log.ts';
import { retry } from '../../proto/common/retry.ts';
import type { RunnerBrowser, RunnerFacts } from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import { onAbort } from '../common/abort.ts';
import { isTransient } from '../common/core-calls.ts';
import { batches, type FromThread, isSuperseded, type ToThread } from './renewals.ts';
import { type Appending, openReported } from './reported.ts';

/** In milliseconds, between two beats of the main thread, which stall.ts watches. */
const BEAT_MS = 1_000;

export type LeaseState = Appending & {
  id: string;
  /**
   * Settles when core has acknowledged the lease, or the lease is lost or dropped. Until then the
   * work may be prepared without visible effects: core may lease it to another runner.
   */
  acknowledged: Promise<void>;
  /** Aborts when the lease is lost. */
  lost: AbortSignal;
  /** Aborts when a user requests the end of the work. */
  released: AbortSignal;
};

export type HeldLease = Disposable &
  LeaseState & {
    /**
     * Reports the outcome; `send` resolves with whether core has answered, and never rejects. Core
     * ends a lease with its outcome: a loss is logged only if core has not answered.
     */
    report(send: () => Promise<boolean>): Promise<void>;
  };

export type Leases = AsyncDisposable & {
  /** Holds a lease that `acknowledge` names next; dispose of it when its work has ended. */
  hold(leaseId: string): HeldLease;
  held(): number;
  /** The ids of all released leases, held or not yet received. */
  release(leaseIds: readonly string[]): void;
  /**
   * Acknowledges these leases to core and renews them from now on. A lease that core has ended, or
   * that could not be acknowledged, is lost: core leases its work again.
   */
  acknowledge(leaseIds: string[]): void;
  /** Reports to core, at once and with each renewal, that this instance leases no more work. */
  drain(): void;
};

/** The lease thread. Dispose of it to end it. */
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
  isReporting: boolean;
};

/** Ours: at 25 leases of 15 s all wait for the renewal, and one lease reports as usual. */
const PAUSE_OF_LEASE_MS = 200;

/** Ours: before an acknowledgement without an answer is sent again. */
const AGAIN = { firstMs: 100, maxMs: 4_000 };

export function openLeases(options: {
  clients: { runners: Pick<Clients['runners'], 'reportRunner'> };
  /** Carries the runner's token. */
  call: CallOptions;
  runner: { runnerId: string; instanceId: string };
  /** Of leases; the longest pause of a log is a third of it. */
  leaseMs?: number;
  openThread(listener: LeaseListener): LeaseThread;
  log: Log;
  isBrowserFailing(): boolean;
  /** For core's overview. */
  browser?(): RunnerBrowser | undefined;
  /** What core shows of the runner. */
  facts?: RunnerFacts;
  /** A newer instance of this runner has registered. */
  onSuperseded(): void;
  /** No lease can be renewed any more. */
  onFailed(error: Error): void;
  /** Aborts when the runner has no time left: unacknowledged leases are lost then. */
  stopped: AbortSignal;
}): Leases {
  const { log } = options;
  const held = new Map<string, Lease>();
  const { append, answered, pauseOf, waitOf, setRead, endAll } = openReported({
    send: (message) => thread.send(message),
    pauseMs: () => Math.min((options.leaseMs ?? 0) / 3, held.size * PAUSE_OF_LEASE_MS),
  });
  let released: ReadonlySet<string> = new Set();
  /** Why no lease can be held any more. */
  let closed: string | undefined;

  const warnOfLoss = (leaseId: string, why: string): void => {
    log.warn({ leaseId, why }, 'a lease is lost');
  };
  const lose = (id: string, why: string): void => {
    const lease = held.get(id);
    if (lease === undefined) return;
    if (!lease.isReporting) warnOfLoss(id, why);
    lease.lost.abort(new Error(`the lease is lost: ${why}`, { cause: why }));
    held.delete(id);
    lease.acknowledged.resolve(); // at once, while other leases may still be acknowledged
  };
  const loseAll = (why: string): void => {
    closed = why;
    endAll(why);
    for (const id of held.keys()) lose(id, why);
  };
  const superseded = (): void => {
    loseAll('a newer runner has taken over');
    options.onSuperseded();
  };
  const confirm = (leaseIds: readonly string[]): void => {
    for (const id of leaseIds) {
      const lease = held.get(id);
      if (lease === undefined) continue;
      lease.isAcknowledged = true;
      lease.acknowledged.resolve();
    }
  };
  const receive = (message: FromThread): void => {
    switch (message.type) {
      case 'acknowledged':
        confirm(message.leaseIds);
        break;
      case 'lost':
        lose(message.leaseId, message.why);
        break;
      case 'answered':
        answered(message.id, message.answer);
        break;
      case 'read':
        setRead(message.ids);
        break;
      case 'superseded':
        superseded();
        break;
    }
  };
  const ended = (error: Error): void => {
    loseAll('the lease thread ended');
    options.onFailed(error);
  };
  const thread = options.openThread({ receive, ended });
  const over = new AbortController();
  let isDraining = false;
  /** What the thread's reports contain, too. */
  const state = () => ({
    browserFailed: options.isBrowserFailing(),
    browser: options.browser?.(),
    facts: options.facts,
  });
  const renew = async (leaseIds: string[]): Promise<string[]> => {
    const { clients, call, runner, leaseMs: timeoutMs } = options;
    const request = { ...runner, ...state(), leaseIds, draining: isDraining };
    const within = { ...call, timeoutMs, signal: over.signal };
    const answer = await clients.runners.reportRunner(request, within);
    setRead(answer.readIds);
    return answer.leaseIds;
  };
  const acknowledge = async (leaseIds: readonly string[]): Promise<void> => {
    // without leases whose work has ended, or that a renewal has acknowledged
    const left = () => leaseIds.filter((id) => held.get(id)?.isAcknowledged === false);
    const refuse = (id: string, why: string): void => {
      lose(id, why);
      thread.send({ type: 'dropped', leaseId: id });
    };
    const once = async (): Promise<void> => {
      const ids = left();
      if (ids.length === 0) return;
      const known = new Set(await renew(ids));
      confirm(ids.filter((id) => known.has(id)));
      for (const id of left()) refuse(id, 'its acknowledgement was late');
    };
    try {
      await retry(once, { ...AGAIN, signal: over.signal, isRetryable: isTransient });
    } catch (error) {
      if (isSuperseded(error)) superseded();
      if (left().length > 0) log.warn({ error: String(error) }, 'acknowledging leases failed');
      for (const id of left()) refuse(id, 'it could not be acknowledged');
    }
  };
  const drop = (leaseId: string): void => {
    const lease = held.get(leaseId);
    if (lease === undefined) return;
    held.delete(leaseId);
    lease.acknowledged.resolve(); // its work may have failed before, and the work loop waits
    thread.send({ type: 'dropped', leaseId });
  };
  const beat = (): void => {
    thread.send({ type: 'beat', isInspected: inspector.url() !== undefined, ...state() });
  };
  beat();
  const beating = setInterval(beat, BEAT_MS).unref();
  const stopping = onAbort(options.stopped, () => {
    for (const [id, { isAcknowledged }] of held) if (!isAcknowledged) lose(id, 'the runner ends');
  });

  return {
    held: () => held.size,
    acknowledge(leaseIds) {
      thread.send({ type: 'acquired', leaseIds });
      for (const some of batches(leaseIds)) void acknowledge(some);
    },
    drain() {
      isDraining = true;
      thread.send({ type: 'draining' });
    },
    hold(leaseId) {
      const lease: Lease = {
        lost: new AbortController(),
        released: new AbortController(),
        acknowledged: Promise.withResolvers<void>(),
        isAcknowledged: false,
        isReporting: false,
      };
      held.set(leaseId, lease);
      if (released.has(leaseId)) lease.released.abort(new Error('released'));
      if (closed !== undefined) lose(leaseId, closed);
      return {
        id: leaseId,
        lost: lease.lost.signal,
        released: lease.released.signal,
        acknowledged: lease.acknowledged.promise,
        append,
        pauseOf,
        waitOf,
        async report(send) {
          const { signal } = lease.lost;
          if (signal.aborted) return;
          lease.isReporting = true;
          const isAnswered = await send();
          if (isAnswered) drop(leaseId);
          else if (signal.aborted) warnOfLoss(leaseId, String((signal.reason as Error).cause));
        },
        [Symbol.dispose]: () => drop(leaseId),
      };
    },
    release(leaseIds) {
      released = new Set(leaseIds);
      for (const id of leaseIds) held.get(id)?.released.abort(new Error('released'));
    },
    async [Symbol.asyncDispose]() {
      over.abort(new Error('the leases are closed'));
      clearInterval(beating);
      stopping[Symbol.dispose]();
      await thread[Symbol.asyncDispose]();
    },
  };
}
