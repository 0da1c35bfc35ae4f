/**
 * Sessions under leases: their runner says when the Chrome is ready and how it ended, and hears
 * which of them a user wants to end.
 */
import { invalidField } from '../proto/errors.ts';
import type {
  AwaitReleasesRequest,
  CompleteSessionRequest,
  RunnerServiceService,
} from '../proto/gen/tabern/v1/runners.pb.ts';
import type { MachineCaller, Service } from './call.ts';
import { cutUtf8 } from './delivery/envelope.ts';
import type { Store } from './store/types.ts';
import { openWake, waitUntil } from './wake.ts';

/** In bytes. Ours: one sentence for people. */
const REASON_MAX_BYTES = 1 << 10;

type Methods = Pick<
  typeof RunnerServiceService,
  'awaitReleases' | 'startSession' | 'completeSession'
>;

export function sessionLeases({
  store,
  now,
  closing,
}: {
  store: Store;
  now: () => number;
  closing: AbortSignal;
}): Service<Methods, MachineCaller> {
  return {
    async awaitReleases(request, { call }) {
      const until = waitUntil(call, request.waitMs);
      for (;;) {
        // Listening begins before looking: a release that comes between is not missed.
        using wake = openWake(store, 'releases');
        const leaseIds = await store.releasedLeases(request);
        const waitMs = until - performance.now();
        if (isNews(request, leaseIds) || waitMs <= 0 || closing.aborted) return { leaseIds };
        if (call.signal.aborted) throw call.signal.reason;
        await wake.wait(waitMs, AbortSignal.any([call.signal, closing]));
      }
    },

    async startSession({ leaseId, startMs }) {
      const at = now();
      // A runner's clock is not ours: no session began after this moment.
      const startedAt = startMs > 0 ? Math.min(Math.round(startMs), at) : at;
      return { accepted: await store.startSession({ leaseId, startedAt, at }) };
    },

    async completeSession({ leaseId, end, reason, proxyBytes }) {
      const outcome = {
        status: statusOf(end),
        reason: cutUtf8(reason, REASON_MAX_BYTES),
        proxyBytes: bytesOf(proxyBytes),
      };
      return { accepted: await store.completeSession({ leaseId, ...outcome, at: now() }) };
    },
  };
}

function isNews({ knownLeaseIds }: AwaitReleasesRequest, leaseIds: string[]): boolean {
  const known = new Set(knownLeaseIds);
  return leaseIds.some((id) => !known.has(id));
}

function statusOf(end: CompleteSessionRequest['end']): 'COMPLETED' | 'TIMED_OUT' | 'ERROR' {
  if (end !== 'END_UNSPECIFIED') return end;
  throw invalidField('end', 'must be COMPLETED, TIMED_OUT or ERROR.');
}

function bytesOf(count: number): number {
  if (Number.isFinite(count) && count >= 0) return Math.round(count);
  throw invalidField('proxyBytes', 'must be a count of bytes.');
}
