/** Contexts, downloads and extensions as the console lists them. */

import type { ListWanted } from '../../types/console.ts';
import type {
  ConsoleContextRow,
  ConsoleDataOps,
  ConsoleDownloadRow,
  ConsoleDownloadsWanted,
  ConsoleExtensionRow,
} from '../../types/console-data.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { ROWS_MAX, type Walk, walks } from './walk.ts';

/** Open sessions of one context that a row names. Source: console_data.proto. */
const SESSIONS_NAMED = 4;

const CONTEXTS = {
  columns: `contexts.id AS id, name, contexts.created_at AS "createdAt", size,
    saved_at AS "savedAt", save_seq AS saves, saved_by AS "savedBy"`,
  table: 'contexts',
  joins: 'LEFT JOIN blobs ON blobs.id = contexts.blob_id',
  where: `contexts.project_id = @projectId AND status = 'active'`,
  filter:
    '(@text::TEXT IS NULL OR strpos(contexts.id, @text) > 0 OR strpos(lower(name), @text) > 0)',
  at: 'contexts.created_at',
  id: 'contexts.id',
} satisfies Walk;

const DOWNLOADS = {
  columns: `id, session_id AS "sessionId", filename, mime_type AS "mimeType", size,
    sha256 AS checksum, created_at AS "createdAt"`,
  table: 'downloads',
  where: 'project_id = @projectId',
  filter: `(@sessionId::TEXT IS NULL OR session_id = @sessionId)
    AND (@text::TEXT IS NULL OR strpos(id, @text) > 0 OR strpos(session_id, @text) > 0
      OR strpos(lower(filename), @text) > 0)`,
  at: 'created_at',
  id: 'id',
} satisfies Walk;

const EXTENSIONS = {
  columns: `extensions.id AS id, file_name AS "fileName", size,
    extensions.created_at AS "createdAt"`,
  table: 'extensions',
  joins: 'JOIN blobs ON blobs.id = extensions.blob_id',
  where: 'extensions.project_id = @projectId AND deleted_at IS NULL',
  at: 'extensions.created_at',
  id: 'extensions.id',
} satisfies Walk;

type Names = 'consoleContexts' | 'consoleDownloads' | 'consoleExtensions';

export function consoleStoredOps(tx: Tx): InReads<Pick<ConsoleDataOps, Names>> {
  const contexts = walks<ListWanted, Omit<ConsoleContextRow, 'sessionIds'>>(tx, CONTEXTS);
  const downloads = walks<ConsoleDownloadsWanted, ConsoleDownloadRow>(tx, DOWNLOADS);
  const extensions = walks<ListWanted, ConsoleExtensionRow>(tx, EXTENSIONS);
  const openSessions = statements(tx).values<[string], string>(`
    SELECT id FROM sessions
    WHERE context_id = ? AND status IN ('PENDING', 'RUNNING')
    ORDER BY id DESC LIMIT ${SESSIONS_NAMED}`);
  return {
    *consoleContexts(wanted) {
      const { rows, next } = yield* contexts(wanted, ROWS_MAX);
      const reads = rows.map((row) => ({ row, ids: openSessions(row.id) }));
      const shown: ConsoleContextRow[] = [];
      for (const { row, ids } of reads) shown.push({ ...row, sessionIds: yield* ids });
      return { rows: shown, next };
    },
    consoleDownloads: (wanted) => downloads(wanted, ROWS_MAX),
    consoleExtensions: (wanted) => extensions(wanted, ROWS_MAX),
  };
}
