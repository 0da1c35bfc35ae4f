/** ConsoleService: what the console shows of a project. */
import type { ConsoleServiceService } from '../../proto/gen/tabern/v1/console.pb.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import type { IsRevoked } from '../projects/revoked-keys.ts';
import type { Store } from '../store/types.ts';
import { consoleChanges } from './changes.ts';
import { consoleDeliveries } from './deliveries.ts';
import { consoleOverview } from './overview.ts';
import { consoleSearch } from './search.ts';
import { consoleSessionEvents } from './session-events.ts';
import { consoleSessions } from './sessions.ts';
import { consoleWork } from './work.ts';

export type ConsoleDeps = {
  store: Store;
  isRevoked: IsRevoked;
  now: () => number;
  /** Aborts when core closes. */
  closing: AbortSignal;
};

export function consoleService(
  deps: ConsoleDeps,
): Service<typeof ConsoleServiceService, ProjectCaller> {
  const { store } = deps;
  return {
    ...consoleOverview(deps),
    ...consoleSessions(store),
    ...consoleSessionEvents(store),
    ...consoleWork(store),
    ...consoleDeliveries(store),
    ...consoleSearch(store),
    ...consoleChanges(deps),
  };
}
