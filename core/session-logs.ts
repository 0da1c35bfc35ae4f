/** Protocol logs of sessions, as their project reads them. interface.md 4.3. */
import { SessionLog, type SessionServiceService } from '../proto/gen/tabern/v1/sessions.pb.ts';
import type { ProjectCaller, Service } from './call.ts';
import { sessionFinder } from './sessions.ts';
import type { Store } from './store/types.ts';

export function sessionLogService({
  store,
}: {
  store: Store;
}): Service<Pick<typeof SessionServiceService, 'listSessionLogs'>, ProjectCaller> {
  const find = sessionFinder(store);
  return {
    async listSessionLogs({ id }, caller) {
      const session = await find(id, caller);
      const entries = await store.listSessionLogs(session.id);
      return { logs: entries.map((entry) => SessionLog.fromJSON(JSON.parse(entry))) };
    },
  };
}
