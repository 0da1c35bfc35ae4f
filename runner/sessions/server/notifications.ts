/** Notifications from core that a runner follows: releases, handoffs, and revoked API keys. */

import type { Clients } from '../../../proto/rpc/services.ts';
import type { Leases } from '../../leases/leases.ts';
import { type Following, follow, WAIT_MS } from '../../leases/long-poll.ts';
import type { Handoffs } from '../handoffs.ts';
import type { Revocations } from './revocations.ts';

type Options = Following & {
  clients: Pick<Clients, 'runners'>;
  runner: { runnerId: string; instanceId: string };
  leases: Pick<Leases, 'release'>;
  server: Pick<Revocations, 'revoke'>;
  handoffs: Pick<Handoffs, 'knownIds' | 'apply'>;
};

/** Settles when the signal aborts, or when this instance is superseded. */
export async function followNotifications(options: Options): Promise<void> {
  const { clients, runner, leases, server, handoffs } = options;
  let knownLeaseIds: string[] = [];
  let knownKeyIds: string[] = [];
  await Promise.all([
    follow('releases', options, async (within) => {
      const request = { ...runner, knownLeaseIds, waitMs: WAIT_MS };
      ({ leaseIds: knownLeaseIds } = await clients.runners.awaitReleases(request, within));
      leases.release(knownLeaseIds);
    }),
    follow('handoffs', options, async (within) => {
      const request = { ...runner, knownIds: handoffs.knownIds, waitMs: WAIT_MS };
      handoffs.apply(await clients.runners.awaitHandoffs(request, within));
    }),
    follow('revocations', options, async (within) => {
      const request = { knownKeyIds, waitMs: WAIT_MS };
      ({ keyIds: knownKeyIds } = await clients.runners.awaitRevocations(request, within));
      server.revoke(knownKeyIds);
    }),
  ]);
}
