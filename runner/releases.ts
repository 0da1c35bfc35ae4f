/**
 * Learns which leases a user wants to end: one long poll for the whole runner, over and over. Core
 * answers with all of them each time, so that none is lost with an answer.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../proto/log.ts';
import type { CallOptions } from '../proto/rpc.ts';
import type { Clients } from '../proto/services.ts';
import { isSuperseded, type Leases } from './leases.ts';

/** Source: AwaitReleasesRequest.wait_ms. */
const WAIT_MS = 25_000;
/** Ours: the answer's own way, beyond the wait. */
const ANSWER_MS = 10_000;
const PAUSE_MIN_MS = 100;
const PAUSE_MAX_MS = 2_000;

/** Settles when the signal aborts, or when this instance is superseded. */
export async function followReleases(options: {
  clients: Pick<Clients, 'runners'>;
  call: CallOptions;
  runner: { runnerId: string; instanceId: string };
  leases: Pick<Leases, 'release'>;
  log: Log;
  signal: AbortSignal;
}): Promise<void> {
  const { clients, call, runner, leases, log, signal } = options;
  let knownLeaseIds: string[] = [];
  let pauseMs = PAUSE_MIN_MS;
  while (!signal.aborted) {
    try {
      const request = { ...runner, knownLeaseIds, waitMs: WAIT_MS };
      const within = { ...call, signal, timeoutMs: WAIT_MS + ANSWER_MS };
      ({ leaseIds: knownLeaseIds } = await clients.runners.awaitReleases(request, within));
      leases.release(knownLeaseIds);
      pauseMs = PAUSE_MIN_MS;
    } catch (error) {
      if (signal.aborted || isSuperseded(error)) return;
      log.warn({ error: String(error) }, 'cannot learn of releases');
      await sleep(pauseMs, undefined, { signal }).catch(() => {});
      pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS);
    }
  }
}
