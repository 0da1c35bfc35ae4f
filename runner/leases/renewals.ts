/**
 * Renews leases in the lease thread, so that no work of the main thread delays a renewal. Every
 * lease is renewed at a third of its time; the first renewal, at once, acknowledges it. A lease is
 * lost when a renewal is answered without it, or when core could not be reached for twice a lease's
 * time. All are lost when a newer instance of this runner has registered.
 */
import { RUNNER_BATCH_MAX } from '../../proto/common/limits.ts';
import type { Log } from '../../proto/common/log.ts';
import { pause } from '../../proto/common/pause.ts';
import type { RunnerBrowser, RunnerFacts } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import { retryCall } from '../common/core-calls.ts';

export type ToThread =
  /** Acknowledge and renew these from now on. */
  | { type: 'acquired'; leaseIds: string[] }
  /** The work has ended: stop renewing the lease. */
  | { type: 'dropped'; leaseId: string }
  /**
   * The main thread is not blocked. `isInspected`: a debugger can stop it. Core receives the state
   * of Chrome and the facts with each renewal.
   */
  | {
      type: 'beat';
      isBrowserFailing: boolean;
      browser?: RunnerBrowser | undefined;
      isInspected: boolean;
      facts?: RunnerFacts | undefined;
    };

export type FromThread =
  /** A renewal of these was answered for the first time. */
  | { type: 'acknowledged'; leaseIds: string[] }
  | { type: 'lost'; leaseId: string; why: string }
  /** A newer instance of this runner has registered. */
  | { type: 'superseded' };

export type Renewals = {
  receive(message: ToThread): void;
  /** Settles when the signal has aborted and no call is in progress. */
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
  let browser: RunnerBrowser | undefined;
  let facts: RunnerFacts | undefined;

  /** Rejects with core's error. `gone`: why leases that the answer lacks are lost. */
  const renewOnce = async (leaseIds: string[], gone: string, within: CallOptions) => {
    const sureUntil = now() + 2 * leaseMs;
    const request = { ...runner, leaseIds, browserFailed, browser, facts };
    const kept = await clients.runners.renewLeases(request, { ...within, timeoutMs: leaseMs });
    const known = new Set(kept.leaseIds);
    const held = leaseIds.filter((id) => known.has(id) && renewed.has(id));
    const first = held.filter((id) => renewed.get(id)?.isAcknowledged === false);
    for (const id of held) renewed.set(id, { isAcknowledged: true, sureUntil });
    if (first.length > 0) send({ type: 'acknowledged', leaseIds: first });
    for (const id of leaseIds) if (!known.has(id)) lose(id, gone);
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
      await renewOnce(leaseIds, 'core has ended it', call);
    } catch (error) {
      if (isSuperseded(error)) return superseded();
      if (renewed.size > 0) log.warn({ error: String(error) }, 'renewing leases failed');
      for (const id of leaseIds) {
        if ((renewed.get(id)?.sureUntil ?? 0) < now())
          lose(id, 'core could not be reached for too long');
      }
    }
  };
  const acknowledge = async (leaseIds: string[]): Promise<void> => {
    // without leases whose work has ended, or that a renewal has acknowledged
    const left = () => leaseIds.filter((id) => renewed.get(id)?.isAcknowledged === false);
    const once = async (): Promise<void> => {
      const ids = left();
      if (ids.length > 0) await renewOnce(ids, 'its acknowledgement was late', { ...call, signal });
    };
    try {
      await retryCall(once, signal);
    } catch (error) {
      if (isSuperseded(error)) superseded();
      for (const id of left()) lose(id, 'it could not be acknowledged');
    }
  };
  const keepRenewing = async (): Promise<void> => {
    while (!signal.aborted) {
      await pause(leaseMs / 3, signal);
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
            const call = acknowledge(leaseIds).finally(() => acknowledging.delete(call));
            acknowledging.add(call);
          }
          break;
        }
        case 'dropped':
          renewed.delete(message.leaseId);
          break;
        case 'beat':
          browserFailed = message.isBrowserFailing;
          browser = message.browser;
          facts = message.facts;
          break;
      }
    },
  };
}

/** At least one batch, even an empty one: an idle runner must learn that it is superseded. */
function batches(leaseIds: readonly string[]): string[][] {
  const count = Math.max(1, Math.ceil(leaseIds.length / RUNNER_BATCH_MAX));
  return Array.from({ length: count }, (_, n) =>
    leaseIds.slice(n * RUNNER_BATCH_MAX, (n + 1) * RUNNER_BATCH_MAX),
  );
}

/** Whether a newer instance has registered: core refuses all further calls of this one. */
export function isSuperseded(error: unknown): boolean {
  return error instanceof Fault && error.reason === 'LEASE_LOST';
}
