/**
 * The reports of a runner, from the lease thread, so that no work of the main thread delays a
 * renewal. Every lease is renewed at a third of its time, also one that the main thread is still
 * acknowledging (leases.ts). A lease is lost when a renewal is answered without it: while core is
 * away, work goes on until its own end, and its lease is presented when core is back. All are lost
 * when a newer instance of this runner has registered.
 *
 * Parts of logs and recordings (entries.ts) are sent with the next renewal, or before it in a
 * report of their own, which then renews the leases when that is nearly due. A renewal never waits
 * for such a report: it is sent beside it. Entries of a report without an answer are sent again.
 */
import { RUNNER_BATCH_MAX } from '../../proto/common/limits.ts';
import type { Log } from '../../proto/common/log.ts';
import { pause } from '../../proto/common/pause.ts';
import type { RunnerBrowser, RunnerFacts } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { asFault, Fault } from '../../proto/rpc/errors.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import { isRepeatable } from '../common/core-calls.ts';
import {
  answersOf,
  type Entry,
  type EntryAnswer,
  openEntries,
  requestOf,
  type Waiting,
} from './entries.ts';

/** Ours: entries that arrive together are sent together. */
const COLLECT_MS = 20;
/** Ours: before entries without an answer are sent again. */
const AGAIN_MS = 1_000;
/**
 * Ours: the part of the interval of renewals after which a report of entries renews, too, so that
 * both are one transaction as a rule.
 */
const WITH_ENTRIES = 0.1;

export type ToThread =
  /** Renew these from now on. */
  | { type: 'acquired'; leaseIds: string[] }
  /** The work has ended: stop renewing the lease. */
  | { type: 'dropped'; leaseId: string }
  /** This instance leases no more work. */
  | { type: 'draining' }
  /**
   * A part of a log or recording; `isUrgent`: its work waits for the answer. `waitMs`: it is sent
   * with another report, or after this time.
   */
  | { type: 'entry'; id: number; entry: Entry; isUrgent: boolean; waitMs?: number | undefined }
  /** Entries that wait are sent now. */
  | { type: 'hurry' }
  /** The sender of the entry waits no more. */
  | { type: 'withdrawn'; id: number }
  /**
   * The main thread is not blocked. `isInspected`: a debugger can stop it. Core receives the state
   * of Chrome and the facts with each renewal.
   */
  | {
      type: 'beat';
      browserFailed: boolean;
      browser?: RunnerBrowser | undefined;
      isInspected: boolean;
      facts?: RunnerFacts | undefined;
    };

export type FromThread =
  /** A renewal of these was answered for the first time: this acknowledges them, too. */
  | { type: 'acknowledged'; leaseIds: string[] }
  | { type: 'lost'; leaseId: string; why: string }
  | { type: 'answered'; id: number; answer: EntryAnswer }
  /** Sessions, invocations and builds whose logs are being read. */
  | { type: 'read'; ids: string[] }
  /** A newer instance of this runner has registered. */
  | { type: 'superseded' };

export type Renewals = {
  receive(message: ToThread): void;
  /** Settles when the signal has aborted and no call is in progress. */
  renewing: Promise<void>;
};

export function openRenewals(options: {
  clients: { runners: Pick<Clients['runners'], 'reportRunner'> };
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
  /** Whether a renewal of each was answered. */
  const renewed = new Map<string, boolean>();
  const calls = new Set<Promise<void>>();
  const entries = openEntries();
  let renewedAt = now();
  /** Aborts the pause before the next renewals. */
  let restart = new AbortController();
  let draining = false;
  let browserFailed: boolean | undefined;
  let browser: RunnerBrowser | undefined;
  let facts: RunnerFacts | undefined;

  /** Sends entries that wait, too, and returns the renewed leases. Rejects with core's error. */
  const report = async (leaseIds: string[]): Promise<string[]> => {
    const taken = entries.take();
    const own = { draining, browserFailed, browser, facts, entries: requestOf(taken) };
    const options = { ...call, timeoutMs: leaseMs };
    try {
      const response = await clients.runners.reportRunner({ ...runner, leaseIds, ...own }, options);
      const answers = answersOf(taken, response.answers);
      for (const [id, answer] of answers) send({ type: 'answered', id, answer });
      send({ type: 'read', ids: response.readIds });
      return response.leaseIds;
    } catch (error) {
      if (isRepeatable(error)) for (const one of taken) entries.add(one);
      else refuse(taken, error);
      throw error;
    }
  };
  const refuse = (taken: readonly Waiting[], error: unknown): void => {
    const { reason, message } = asFault(error);
    const answer = { full: false, reason, message };
    for (const { id } of taken) send({ type: 'answered', id, answer });
  };
  /** Rejects with core's error. */
  const renewOnce = async (leaseIds: string[]) => {
    const known = new Set(await report(leaseIds));
    const held = leaseIds.filter((id) => known.has(id) && renewed.has(id));
    const first = held.filter((id) => renewed.get(id) === false);
    for (const id of held) renewed.set(id, true);
    if (first.length > 0) send({ type: 'acknowledged', leaseIds: first });
    for (const id of leaseIds) if (!known.has(id)) lose(id, 'core has ended it');
  };
  const lose = (leaseId: string, why: string): void => {
    if (renewed.delete(leaseId)) send({ type: 'lost', leaseId, why });
  };
  const superseded = (): void => {
    renewed.clear();
    send({ type: 'superseded' });
  };
  /** Whether core has answered. */
  const renew = async (leaseIds: string[]): Promise<boolean> => {
    try {
      await renewOnce(leaseIds);
      return true;
    } catch (error) {
      if (isSuperseded(error)) superseded();
      if (renewed.size > 0) log.warn({ error: String(error) }, 'renewing leases failed');
      return false;
    }
  };
  const renewAll = async (): Promise<void> => {
    renewedAt = now();
    await Promise.all(batches([...renewed.keys()]).map(renew));
  };
  const keepRenewing = async (): Promise<void> => {
    while (!signal.aborted) {
      restart = new AbortController();
      await pause(leaseMs / 3, AbortSignal.any([signal, restart.signal]));
      if (!signal.aborted && !restart.signal.aborted) await renewAll();
    }
    await Promise.all(calls);
  };
  /** Until none waits. */
  const sendEntries = async (): Promise<void> => {
    while (entries.size > 0) {
      const isRenewal = now() - renewedAt >= (WITH_ENTRIES * leaseMs) / 3;
      if (isRenewal && renewed.size > 0 && renewed.size <= RUNNER_BATCH_MAX) {
        renewedAt = now();
        restart.abort();
        if (!(await renew([...renewed.keys()]))) return again();
      } else {
        await report([]);
      }
    }
  };
  let collecting: { until: number; timer: NodeJS.Timeout } | undefined;
  /** Sends what waits after this time, or sooner. */
  const collect = (ms: number): void => {
    const until = performance.now() + ms;
    if (collecting !== undefined && collecting.until <= until) return;
    clearTimeout(collecting?.timer);
    collecting = { until, timer: setTimeout(() => beginEntries(), ms) };
  };
  const again = (): void => collect(AGAIN_MS);
  const beginEntries = (): void => {
    clearTimeout(collecting?.timer);
    collecting = undefined;
    begin(sendEntries().catch(again));
  };
  /** In addition to the regular renewals. */
  const begin = (call: Promise<void>): void => {
    const begun = call.finally(() => calls.delete(begun));
    calls.add(begun);
  };

  return {
    renewing: keepRenewing(),
    receive(message) {
      switch (message.type) {
        case 'acquired':
          for (const id of message.leaseIds) renewed.set(id, false);
          break;
        case 'dropped':
          renewed.delete(message.leaseId);
          break;
        case 'entry':
          entries.add(message);
          if (message.isUrgent) beginEntries();
          else collect(message.waitMs ?? COLLECT_MS);
          break;
        case 'hurry':
          beginEntries();
          break;
        case 'withdrawn':
          entries.withdraw(message.id);
          break;
        case 'draining':
          draining = true;
          begin(renewAll());
          break;
        case 'beat':
          ({ browserFailed, browser, facts } = message);
          break;
      }
    },
  };
}

/** At least one batch, even an empty one: an idle runner must learn that it is superseded. */
export function batches(leaseIds: readonly string[]): string[][] {
  const count = Math.max(1, Math.ceil(leaseIds.length / RUNNER_BATCH_MAX));
  return Array.from({ length: count }, (_, n) =>
    leaseIds.slice(n * RUNNER_BATCH_MAX, (n + 1) * RUNNER_BATCH_MAX),
  );
}

/** Whether a newer instance has registered: core refuses all further calls of this one. */
export function isSuperseded(error: unknown): boolean {
  return error instanceof Fault && error.reason === 'LEASE_LOST';
}
