/** Sessions as rows of the console. */
import type {
  ConsoleServiceService,
  ConsoleSession,
} from '../../proto/gen/tabern/v1/console.pb.ts';
import { dateOf } from '../api/answers.ts';
import { inRange, orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { pathId } from '../common/ids.ts';
import { filteredLabels } from '../sessions/labels.ts';
import { parseQuery } from '../sessions/metadata-query.ts';
import type { SigningKeys } from '../sessions/signing-keys.ts';
import type { ConsoleSessionRow } from '../store/types/console.ts';
import type { Store } from '../store/types.ts';
import { cursorAfter, listOf, optionalId } from './filters.ts';

type Handlers = Service<typeof ConsoleServiceService, ProjectCaller>;

/** Source: console.proto. */
const RUNNING_IDS = { min: 1, max: 100 };
const REGION_CHARS = { min: 1, max: 32, unit: ' characters' };

type Options = {
  store: Pick<Store, 'consoleSessions' | 'consoleSession' | 'consoleRunning'>;
  signingKeys: Pick<SigningKeys, 'of'>;
};

export function consoleSessions({
  store,
  signingKeys,
}: Options): Pick<Handlers, 'listSessions' | 'getSession' | 'listRunningSessions'> {
  return {
    async listSessions(
      { status, q, label, functionId, contextId, region, ...page },
      { projectId },
    ) {
      if (region !== undefined) inRange('region', region.length, REGION_CHARS);
      const owner = { projectId, list: 'sessions' };
      const found = await store.consoleSessions({
        ...listOf(owner, page),
        status,
        functionId: optionalId('functionId', functionId),
        contextId: optionalId('contextId', contextId),
        region,
        metadata: q === undefined ? undefined : parseQuery(q),
        labelKey: label === undefined ? undefined : filteredLabels([label])[0],
      });
      return { sessions: found.rows.map(toProto), nextCursor: cursorAfter(owner, found) };
    },

    async getSession({ id: text }, { projectId }) {
      const id = pathId('id', text);
      const row = await store.consoleSession({ id, projectId });
      return { session: toProto(orNotFound(row, 'Session', id)) };
    },

    async listRunningSessions({ ids: texts }, { projectId, keyId }) {
      inRange('ids', texts.length, RUNNING_IDS);
      const ids = [...new Set(texts.map((text) => pathId('ids', text)))];
      const running = await store.consoleRunning({ projectId, ids });
      return { sessions: running.map((id) => ({ id, signingKey: signingKeys.of(id, keyId) })) };
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
