/** ConsoleService: what the console shows of a project. */
import type { ConsoleServiceService } from '../../proto/gen/tabern/v1/console.pb.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import type { Sealer } from '../common/sealer.ts';
import type { Disk } from '../files/disk-space.ts';
import type { Readiness } from '../maintenance/readiness.ts';
import type { IsRevoked } from '../projects/revoked-keys.ts';
import type { SigningKeys } from '../sessions/signing-keys.ts';
import type { Store } from '../store/types.ts';
import { consoleChanges } from './changes.ts';
import { consoleDeliveries } from './deliveries.ts';
import { consoleFunctions } from './functions.ts';
import { consoleOverview } from './overview.ts';
import { consoleSearch } from './search.ts';
import { consoleSessionEvents } from './session-events.ts';
import { consoleSessions } from './sessions.ts';
import { consoleStored } from './stored.ts';
import { consoleUsage } from './usage.ts';
import { consoleWebhooks } from './webhooks.ts';
import { consoleWork } from './work.ts';

export type ConsoleDeps = {
  store: Store;
  signingKeys: Pick<SigningKeys, 'of'>;
  disk: Pick<Disk, 'freeBytes' | 'isLow'>;
  readiness: Pick<Readiness, 'runners' | 'browsers'>;
  isRevoked: IsRevoked;
  sealer: Sealer;
  now: () => number;
  /** The machine's clock, with which receivers compare signatures. */
  wall: () => number;
  /** Aborts when core closes. */
  closing: AbortSignal;
};

export function consoleService(
  deps: ConsoleDeps,
): Service<typeof ConsoleServiceService, ProjectCaller> {
  const { store } = deps;
  return {
    ...consoleOverview(deps),
    ...consoleSessions(deps),
    ...consoleSessionEvents(store),
    ...consoleWork(store),
    ...consoleFunctions(deps),
    ...consoleDeliveries(store),
    ...consoleWebhooks(deps),
    ...consoleStored(store),
    ...consoleUsage(deps),
    ...consoleSearch(store),
    ...consoleChanges(deps),
  };
}
