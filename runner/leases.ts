/**
 * What this runner holds. Every lease is renewed at a third of its time; one that core does not
 * answer back is lost, and so is every lease when core could not be reached for twice a lease's
 * time, or knows a newer instance of this runner: its work is aborted. A held lease may be released
 * by a user (releases.ts): it is still held until its work has ended. held -> dropped | lost.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Fault } from '../proto/errors.ts';
import type { Log } from '../proto/log.ts';
import type { CallOptions } from '../proto/rpc.ts';
import type { Clients } from '../proto/services.ts';
import { retried } from './retry.ts';

/** Source: RenewLeasesRequest.lease_ids. */
const RENEW_MAX = 1_000;

export type Ends = {
  /** Aborts when the lease is lost. */
  lost: AbortSignal;
  /** Aborts when a user wants its work to end. */
  released: AbortSignal;
};

/** How a piece of work hears of its lease. */
export type Held = Ends & {
  /**
   * Settles when core is known to have heard that it came, or when it is lost. Until then it may be
   * prepared, with what nobody sees: another runner may be given it.
   */
  taken: Promise<void>;
};

export type Leases = {
  /** From now on it is renewed; dispose when its work has ended. */
  hold(leaseId: string): Disposable & Held;
  held(): number;
  /** These are all whose work shall end, held or on their way here. */
  release(leaseIds: readonly string[]): void;
  /**
   * Tells core that these, which are held, have come; `taken` of each says how it went. Those that
   * it does not know any more, or could not be told of, are lost here: it offers again what it has
   * not heard of. A renewal tells it as well.
   */
  take(leaseIds: string[]): void;
  /** Settles when the signal aborts and core is told nothing more. */
  renewing: Promise<void>;
};

type Lease = {
  lost: AbortController;
  released: AbortController;
  taken: PromiseWithResolvers<void>;
  isTaken: boolean;
  sureUntil: number;
};

export function openLeases(options: {
  clients: Pick<Clients, 'runners'>;
  call: CallOptions;
  runner: { runnerId: string; instanceId: string };
  leaseMs: number;
  log: Log;
  now: () => number;
  /** Told to core with each renewal. */
  isBrowserFailing?: (() => boolean) | undefined;
  /** A newer instance of this runner has registered. */
  onSuperseded(): void;
  /** Aborts when the runner has no time left: what core was not told of by then is lost. */
  stopped: AbortSignal;
  signal: AbortSignal;
}): Leases {
  const { clients, call, runner, leaseMs, log, now, signal } = options;
  const held = new Map<string, Lease>();
  const telling = new Set<Promise<void>>();
  const noTelling = AbortSignal.any([signal, options.stopped]);
  let released: ReadonlySet<string> = new Set();

  /** Asks core to keep these, which is how it hears that they have come, too. */
  const ask = async (leaseIds: string[], gone: string, within: CallOptions): Promise<void> => {
    const sureUntil = now() + 2 * leaseMs;
    const browserFailed = options.isBrowserFailing?.();
    const request = { ...runner, leaseIds, browserFailed };
    const kept = await clients.runners.renewLeases(request, { ...within, timeoutMs: leaseMs });
    const known = new Set(kept.leaseIds);
    for (const id of leaseIds) {
      if (known.has(id)) keep(id, sureUntil);
      else lose(id, gone);
    }
  };
  const renew = async (leaseIds: string[]): Promise<void> => {
    try {
      await ask(leaseIds, 'core has ended it', call);
    } catch (error) {
      if (isSuperseded(error)) {
        superseded();
        return;
      }
      if (held.size > 0) log.warn({ error: String(error) }, 'leases could not be renewed');
      for (const id of leaseIds) {
        if ((held.get(id)?.sureUntil ?? 0) < now())
          lose(id, 'core could not be reached for too long');
      }
    }
  };
  const tell = async (leaseIds: string[]): Promise<void> => {
    // since the last try its work may have ended, or a renewal was answered
    const untaken = () => leaseIds.filter((id) => held.get(id)?.isTaken === false);
    const told = async (): Promise<void> => {
      const ids = untaken();
      if (ids.length > 0) await ask(ids, 'it came too late', { ...call, signal: noTelling });
    };
    try {
      await retried(told, noTelling);
    } catch (error) {
      if (isSuperseded(error)) superseded();
      for (const id of untaken()) lose(id, 'core could not be told that it came');
    }
  };
  const superseded = (): void => {
    for (const id of held.keys()) lose(id, 'a newer runner has taken over');
    options.onSuperseded();
  };
  const keep = (id: string, sureUntil: number): void => {
    const lease = held.get(id);
    if (lease === undefined) return;
    lease.sureUntil = sureUntil;
    lease.isTaken = true;
    lease.taken.resolve();
  };
  const lose = (id: string, why: string): void => {
    const lease = held.get(id);
    if (lease === undefined) return;
    log.warn({ leaseId: id, why }, 'a lease is lost');
    lease.lost.abort(new Error(`the lease is lost: ${why}`));
    held.delete(id);
    lease.taken.resolve(); // whatever core is still told of the others
  };
  const keepRenewing = async (): Promise<void> => {
    while (!signal.aborted) {
      await sleep(leaseMs / 3, undefined, { signal }).catch(() => {});
      // with nothing held too: it is how an idle runner learns that it is superseded
      if (!signal.aborted) await renew([...held.keys()].slice(0, RENEW_MAX));
    }
    await Promise.all(telling);
  };

  return {
    renewing: keepRenewing(),
    held: () => held.size,
    take(leaseIds) {
      const told = tell(leaseIds).finally(() => telling.delete(told));
      telling.add(told);
    },
    hold(leaseId) {
      const lease = {
        lost: new AbortController(),
        released: new AbortController(),
        taken: Promise.withResolvers<void>(),
        isTaken: false,
        sureUntil: now() + 2 * leaseMs,
      };
      held.set(leaseId, lease);
      if (released.has(leaseId)) lease.released.abort(new Error('released'));
      return {
        lost: lease.lost.signal,
        released: lease.released.signal,
        taken: lease.taken.promise,
        [Symbol.dispose]: () => void held.delete(leaseId),
      };
    },
    release(leaseIds) {
      released = new Set(leaseIds);
      for (const id of leaseIds) held.get(id)?.released.abort(new Error('released'));
    },
  };
}

/** Core refuses the instance itself, now and for ever. */
export function isSuperseded(error: unknown): boolean {
  return error instanceof Fault && error.reason === 'LEASE_LOST';
}
