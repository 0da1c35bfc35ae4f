/**
 * Renews leases, in the lease thread: nothing that a tenant sends to the main thread delays it.
 * Every lease is renewed at a third of its time; the first renewal, made at once, acknowledges it.
 * A lease is lost when core does not answer it back, or could not be reached for twice a lease's
 * time; all are lost when core knows a newer instance of this runner.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { RUNNER_BATCH_MAX } from '../../proto/common/limits.ts';
import type { Log } from '../../proto/common/log.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import { retryCall } from '../common/core-calls.ts';

export type ToThread =
  /** From now on these are renewed. */
  | { type: 'acquired'; leaseIds: string[] }
  /** Its work has ended: it is not renewed any more. */
  | { type: 'dropped'; leaseId: string }
  /**
   * The main thread turns, and whether a debugger can stop it; core receives the state of Chrome
   * with each renewal.
   */
  | { type: 'beat'; isBrowserFailing: boolean; isInspected: boolean };

export type FromThread =
  /** Core knows that these have arrived. */
  | { type: 'acknowledged'; leaseIds: string[] }
  | { type: 'lost'; leaseId: string; why: string }
  /** A newer instance of this runner has registered. */
  | { type: 'superseded' };

export type Renewals = {
  receive(message: ToThread): void;
  /** Settles when the signal aborts and no call is under way. */
  renewing: Promise<void>;
};

type Renewed = { isAcknowledged: boolean; sureUntil: number };

export function openRenewals(options: {
  clients: { runners: Pick<Clients['runners'], 'renewLeases'> };
  call: CallOptions;
  runner: { runnerId: string; instanceId: string };
  leaseMs: number;
  log: Log;
  /** Monotonic, in milliseconds. */
  now: () => number;
  send(message: FromThread): void;
  signal: AbortSignal;
}): Renewals {
  const { clients, call, runner, leaseMs, log, now, send, signal } = options;
  const renewed = new Map<string, Renewed>();
  const acknowledging = new Set<Promise<void>>();
  let browserFailed: boolean | undefined;

  /** Throws what core answered, or that it did not. `gone`: why the others are lost. */
  const ask = async (leaseIds: string[], gone: string, within: CallOptions): Promise<void> => {
    const sureUntil = now() + 2 * leaseMs;
    const request = { ...runner, leaseIds, browserFailed };
    const kept = await clients.runners.renewLeases(request, { ...within, timeoutMs: leaseMs });
    const known = new Set(kept.leaseIds);
    keep(
      leaseIds.filter((id) => known.has(id)),
      sureUntil,
    );
    for (const id of leaseIds) if (!known.has(id)) lose(id, gone);
  };
  const keep = (leaseIds: string[], sureUntil: number): void => {
    const first: string[] = [];
    for (const id of leaseIds) {
      const lease = renewed.get(id);
      if (lease === undefined) continue;
      if (!lease.isAcknowledged) first.push(id);
      renewed.set(id, { isAcknowledged: true, sureUntil });
    }
    if (first.length > 0) send({ type: 'acknowledged', leaseIds: first });
  };
  const lose = (leaseId: string, why: string): void => {
    if (renewed.delete(leaseId)) send({ type: 'lost', leaseId, why });
  };
  const superseded = (): void => {
    renewed.clear();
    send({ type: 'superseded' });
  };
  const renew = async (leaseIds: string[]): Promise<void> => {
    try {
      await ask(leaseIds, 'core has ended it', call);
    } catch (error) {
      if (isSuperseded(error)) return superseded();
      if (renewed.size > 0) log.warn({ error: String(error) }, 'leases could not be renewed');
      for (const id of leaseIds) {
        if ((renewed.get(id)?.sureUntil ?? 0) < now())
          lose(id, 'core could not be reached for too long');
      }
    }
  };
  const acknowledge = async (leaseIds: string[]): Promise<void> => {
    // since the last try its work may have ended, or a renewal was answered
    const left = () => leaseIds.filter((id) => renewed.get(id)?.isAcknowledged === false);
    const once = async (): Promise<void> => {
      const ids = left();
      if (ids.length > 0) await ask(ids, 'it came too late', { ...call, signal });
    };
    try {
      await retryCall(once, signal);
    } catch (error) {
      if (isSuperseded(error)) superseded();
      for (const id of left()) lose(id, 'core could not be told that it came');
    }
  };
  const keepRenewing = async (): Promise<void> => {
    while (!signal.aborted) {
      await sleep(leaseMs / 3, undefined, { signal }).catch(() => {});
      if (!signal.aborted) await Promise.all(batches([...renewed.keys()]).map(renew));
    }
    await Promise.all(acknowledging);
  };

  return {
    renewing: keepRenewing(),
    receive(message) {
      switch (message.type) {
        case 'acquired': {
          const lease = { isAcknowledged: false, sureUntil: now() + 2 * leaseMs };
          for (const id of message.leaseIds) renewed.set(id, lease);
          for (const leaseIds of batches(message.leaseIds)) {
            const asked = acknowledge(leaseIds).finally(() => acknowledging.delete(asked));
            acknowledging.add(asked);
          }
          break;
        }
        case 'dropped':
          renewed.delete(message.leaseId);
          break;
        case 'beat':
          browserFailed = message.isBrowserFailing;
          break;
      }
    },
  };
}

/** At least one, be it empty: so an idle runner learns that it is superseded. */
function batches(leaseIds: readonly string[]): string[][] {
  const count = Math.max(1, Math.ceil(leaseIds.length / RUNNER_BATCH_MAX));
  return Array.from({ length: count }, (_, n) =>
    leaseIds.slice(n * RUNNER_BATCH_MAX, (n + 1) * RUNNER_BATCH_MAX),
  );
}

/** Core refuses the instance itself, now and for ever. */
export function isSuperseded(error: unknown): boolean {
  return error instanceof Fault && error.reason === 'LEASE_LOST';
}
