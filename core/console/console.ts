/** ConsoleService: what the console shows of a project. */
import { ConsoleServiceService } from '../../proto/gen/tabern/v1/console.pb.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import type { Store } from '../store/types.ts';
import { consoleSessions } from './sessions.ts';

type Handlers = Service<typeof ConsoleServiceService, ProjectCaller>;

export function consoleService({ store }: { store: Store }): Handlers {
  const missing = Object.keys(ConsoleServiceService).map((name) => [name, notImplemented]);
  return { ...(Object.fromEntries(missing) as Handlers), ...consoleSessions(store) };
}

function notImplemented(): never {
  throw new Fault('NOT_IMPLEMENTED', 'This operation is not implemented yet.');
}
