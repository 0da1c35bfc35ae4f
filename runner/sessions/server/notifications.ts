/** Notifications from core that a runner follows: releases, and revoked API keys. */

import type { Clients } from '../../../proto/rpc/services.ts';
import type { Leases } from '../../leases/leases.ts';
import { type Following, follow, WAIT_MS } from '../../leases/long-poll.ts';
import { followRevocations } from './revocations.ts';

type Options = Parameters<typeof followReleases>[0] & Parameters<typeof followRevocations>[0];

/** Settles when the signal aborts, or when this instance is superseded. */
export async function followNotifications(options: Options): Promise<void> {
  await Promise.all([followReleases(options), followRevocations(options)]);
}

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
