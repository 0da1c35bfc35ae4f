/**
 * Sessions under leases: their runner reports when Chrome is ready and how the session ended, and
 * receives cancellations by users.
 */

import type { RunnerServiceService } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { invalidField } from '../../proto/rpc/errors.ts';
import { type Call, throwIfOver } from '../../proto/rpc/local.ts';
import { inRange } from '../api/checks.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';
import { longPoll } from '../api/long-poll.ts';
import { SINCE_MS } from '../projects/revoked-keys.ts';
import { cutReason } from '../store/operations/texts.ts';
import type { Store } from '../store/types.ts';

/** Of one session: 10 Gbit/s for ten days. Ours: thousands of them can be added in 64 bits. */
const PROXY_BYTES_MAX = 2 ** 50;

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
    async awaitReleases({ knownLeaseIds: knownIds, waitMs, ...holder }, { call }) {
      const look = () => store.releasedLeases(holder);
      return { leaseIds: await news('releases', look, { knownIds, waitMs, call }) };
    },

    async awaitRevocations({ knownKeyIds: knownIds, waitMs }, { call }) {
      const look = () => store.revokedKeys(now() - SINCE_MS);
      return { keyIds: await news('revocations', look, { knownIds, waitMs, call }) };
    },

    async startSession({ leaseId, startMs }) {
      const at = now();
      // A runner's clock may differ: no session has started after this moment.
      const startedAt = startMs > 0 ? Math.min(Math.round(startMs), at) : at;
      return { accepted: await store.startSession({ leaseId, startedAt, at }) };
    },

    async completeSession({ leaseId, end, reason, proxyBytes }) {
      if (end === 'END_UNSPECIFIED') {
        throw invalidField('end', 'must be COMPLETED, TIMED_OUT or ERROR.');
      }
      inRange('proxyBytes', proxyBytes, { max: PROXY_BYTES_MAX });
      const outcome = {
        status: end,
        reason: cutReason(reason),
        proxyBytes: Math.round(proxyBytes),
      };
      return { accepted: await store.completeSession({ leaseId, ...outcome, at: now() }) };
    },
  };

  /** The whole list, as soon as one entry is unknown. */
  async function news(
    topic: 'releases' | 'revocations',
    look: () => Promise<string[]>,
    wanted: { knownIds: string[]; waitMs: number; call: Call },
  ): Promise<string[]> {
    const { waitMs, call } = wanted;
    const known = new Set(wanted.knownIds);
    const found = await longPoll(store, topic, look, {
      call,
      closing,
      waitMs,
      isDone: (ids) => ids.some((id) => !known.has(id)),
    });
    throwIfOver(call);
    return found;
  }
}
