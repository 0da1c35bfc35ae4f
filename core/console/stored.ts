/** Contexts, downloads and extensions as rows of the console. */
import type { ConsoleServiceService } from '../../proto/gen/tabern/v1/console.pb.ts';
import type { ConsoleContext } from '../../proto/gen/tabern/v1/console_data.pb.ts';
import { dateOf } from '../api/answers.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import type { ConsoleContextRow } from '../store/types/console-data.ts';
import type { Store } from '../store/types.ts';
import { cursorAfter, listOf, optionalId } from './filters.ts';

type Handlers = Service<typeof ConsoleServiceService, ProjectCaller>;

export function consoleStored(
  store: Pick<Store, 'consoleContexts' | 'consoleDownloads' | 'consoleExtensions'>,
): Pick<Handlers, 'listContexts' | 'listDownloads' | 'listExtensions'> {
  return {
    async listContexts(page, { projectId }) {
      const owner = { projectId, list: 'contexts' };
      const found = await store.consoleContexts(listOf(owner, page));
      return { contexts: found.rows.map(toContext), nextCursor: cursorAfter(owner, found) };
    },

    async listDownloads({ sessionId, ...page }, { projectId }) {
      const owner = { projectId, list: 'downloads' };
      const found = await store.consoleDownloads({
        ...listOf(owner, page),
        sessionId: optionalId('sessionId', sessionId),
      });
      return { downloads: found.rows.map(dated), nextCursor: cursorAfter(owner, found) };
    },

    async listExtensions(page, { projectId }) {
      const owner = { projectId, list: 'extensions' };
      const found = await store.consoleExtensions(listOf(owner, page));
      return { extensions: found.rows.map(dated), nextCursor: cursorAfter(owner, found) };
    },
  };
}

function toContext({ savedAt, ...row }: ConsoleContextRow): ConsoleContext {
  return {
    ...dated(row),
    name: row.name ?? undefined,
    size: row.size ?? undefined,
    savedAt: dateOf(savedAt),
    savedBy: row.savedBy ?? undefined,
  };
}

function dated<Row extends { createdAt: number }>(row: Row) {
  return { ...row, createdAt: new Date(row.createdAt) };
}
