/** Learns which leases a user wants to end: one long poll for the whole runner, over and over. */
import type { Clients } from '../../../proto/rpc/services.ts';
import type { Leases } from '../../leases/leases.ts';
import { type Following, follow, WAIT_MS } from '../../leases/long-poll.ts';

/** Settles when the signal aborts, or when this instance is superseded. */
export async function followReleases(
  options: Following & {
    clients: Pick<Clients, 'runners'>;
    runner: { runnerId: string; instanceId: string };
    leases: Pick<Leases, 'release'>;
  },
): Promise<void> {
  const { clients, runner, leases } = options;
  let knownLeaseIds: string[] = [];
  await follow('releases', options, async (within) => {
    const request = { ...runner, knownLeaseIds, waitMs: WAIT_MS };
    ({ leaseIds: knownLeaseIds } = await clients.runners.awaitReleases(request, within));
    leases.release(knownLeaseIds);
  });
}
