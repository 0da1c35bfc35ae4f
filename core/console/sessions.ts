/** Sessions as rows of the console. */
import type {
  ConsoleServiceService,
  ConsoleSession,
} from '../../proto/gen/tabern/v1/console.pb.ts';
import { dateOf } from '../api/answers.ts';
import { orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { pathId } from '../common/ids.ts';
import { parseQuery } from '../sessions/metadata-query.ts';
import type { ConsoleSessionRow } from '../store/types/console.ts';
import type { Store } from '../store/types.ts';
import { cursorAfter, listOf, optionalId } from './filters.ts';

type Handlers = Service<typeof ConsoleServiceService, ProjectCaller>;

export function consoleSessions(
  store: Pick<Store, 'consoleSessions' | 'consoleSession'>,
): Pick<Handlers, 'listSessions' | 'getSession'> {
  return {
    async listSessions({ status, q, functionId, contextId, ...page }, { projectId }) {
      const owner = { projectId, list: 'sessions' };
      const found = await store.consoleSessions({
        ...listOf(owner, page),
        status,
        functionId: optionalId('functionId', functionId),
        contextId: optionalId('contextId', contextId),
        metadata: q === undefined ? undefined : parseQuery(q),
      });
      return { sessions: found.rows.map(toProto), nextCursor: cursorAfter(owner, found) };
    },

    async getSession({ id: text }, { projectId }) {
      const id = pathId('id', text);
      const row = await store.consoleSession({ id, projectId });
      return { session: toProto(orNotFound(row, 'Session', id)) };
    },
  };
}

function toProto(row: ConsoleSessionRow): ConsoleSession {
  const { startedAt, endedAt, endReason, userMetadata, ...same } = row;
  const { contextId, invocationId, functionId, functionName } = row;
  return {
    ...same,
    createdAt: new Date(row.createdAt),
    startedAt: dateOf(startedAt),
    endedAt: dateOf(endedAt),
    expiresAt: new Date(row.expiresAt),
    endReason: endReason || undefined,
    userMetadata: userMetadata === null ? undefined : JSON.parse(userMetadata),
    contextId: contextId ?? undefined,
    invocationId: invocationId ?? undefined,
    functionId: functionId ?? undefined,
    functionName: functionName ?? undefined,
  };
}
