/**
 * Sessions under leases: their runner reports when Chrome is ready and how the session ended, and
 * receives cancellations by users.
 */

import type {
  CompleteSessionRequest,
  RunnerServiceService,
} from '../../proto/gen/tabern/v1/runners.pb.ts';
import { invalidField } from '../../proto/rpc/errors.ts';
import { type Call, throwIfOver } from '../../proto/rpc/local.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';
import { longPoll, waitUntil } from '../api/long-poll.ts';
import { cutUtf8 } from '../delivery/envelope.ts';
import type { Store } from '../store/types.ts';

/** In bytes. Ours: one sentence for people. */
const REASON_MAX_BYTES = 1 << 10;
/** No connection is older: a session lives 6 h at most. */
const REVOKED_TOLD_MS = 86_400_000;

type Methods = Pick<
  typeof RunnerServiceService,
  'awaitReleases' | 'awaitRevocations' | 'startSession' | 'completeSession'
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
    async awaitReleases({ knownLeaseIds, waitMs, ...holder }, { call }) {
      const look = () => store.releasedLeases(holder);
      const leaseIds = await news('releases', { look, known: knownLeaseIds, waitMs, call });
      return { leaseIds };
    },

    async awaitRevocations({ knownKeyIds, waitMs }, { call }) {
      const look = () => store.revokedKeys(now() - REVOKED_TOLD_MS);
      const keyIds = await news('revocations', { look, known: knownKeyIds, waitMs, call });
      return { keyIds };
    },

    async startSession({ leaseId, startMs }) {
      const at = now();
      // A runner's clock may differ: no session has started after this moment.
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

  /** The whole list, as soon as one entry is unknown. */
  async function news(
    topic: 'releases' | 'revocations',
    asked: { look: () => Promise<string[]>; known: string[]; waitMs: number; call: Call },
  ): Promise<string[]> {
    const { look, waitMs, call } = asked;
    const known = new Set(asked.known);
    const found = await longPoll(store, topic, look, {
      until: waitUntil(call, waitMs),
      isDone: (ids) => ids.some((id) => !known.has(id)),
      signal: AbortSignal.any([call.signal, closing]),
    });
    throwIfOver(call);
    return found;
  }
}

function statusOf(end: CompleteSessionRequest['end']): 'COMPLETED' | 'TIMED_OUT' | 'ERROR' {
  if (end !== 'END_UNSPECIFIED') return end;
  throw invalidField('end', 'must be COMPLETED, TIMED_OUT or ERROR.');
}

function bytesOf(count: number): number {
  if (Number.isFinite(count) && count >= 0) return Math.round(count);
  throw invalidField('proxyBytes', 'must be a count of bytes.');
}
