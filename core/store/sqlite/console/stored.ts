/** Contexts, downloads and extensions as the console lists them. */

import type { ListWanted } from '../../types/console.ts';
import type {
  ConsoleContextRow,
  ConsoleDataOps,
  ConsoleDownloadRow,
  ConsoleDownloadsWanted,
  ConsoleExtensionRow,
} from '../../types/console-data.ts';
import { queries } from '../engine/statements.ts';
import type { Tx } from '../engine/transaction.ts';
import { ROWS_MAX, type Walk, walks } from './walk.ts';

/** Open sessions of one context that a row names. Source: console_data.proto. */
const SESSIONS_NAMED = 4;

const CONTEXTS = {
  columns: `contexts.id AS id, name, contexts.created_at AS createdAt, size,
    saved_at AS savedAt, save_seq AS saves, saved_by AS savedBy`,
  table: 'contexts INDEXED BY contexts_by_time',
  joins: 'LEFT JOIN blobs ON blobs.id = contexts.blob_id',
  where: `contexts.project_id = @projectId AND status = 'active'`,
  filter: '(@text IS NULL OR instr(contexts.id, @text) OR instr(lower(name), @text))',
  at: 'contexts.created_at',
  id: 'contexts.id',
} satisfies Walk;

const DOWNLOADS = {
  columns: `id, session_id AS sessionId, filename, mime_type AS mimeType, size,
    sha256 AS checksum, created_at AS createdAt`,
  table: 'downloads INDEXED BY downloads_by_time',
  where: 'project_id = @projectId',
  filter: `(@sessionId IS NULL OR session_id = @sessionId)
    AND (@text IS NULL OR instr(id, @text) OR instr(session_id, @text)
      OR instr(lower(filename), @text))`,
  at: 'created_at',
  id: 'id',
} satisfies Walk;

const EXTENSIONS = {
  columns: `extensions.id AS id, file_name AS fileName, size,
    extensions.created_at AS createdAt`,
  table: 'extensions INDEXED BY extensions_by_time',
  joins: 'JOIN blobs ON blobs.id = extensions.blob_id',
  where: 'extensions.project_id = @projectId AND deleted_at IS NULL',
  at: 'extensions.created_at',
  id: 'extensions.id',
} satisfies Walk;

type Names = 'consoleContexts' | 'consoleDownloads' | 'consoleExtensions';

export function consoleStoredOps(tx: Tx): Pick<ConsoleDataOps, Names> {
  const contexts = walks<ListWanted, Omit<ConsoleContextRow, 'sessionIds'>>(tx, CONTEXTS);
  const downloads = walks<ConsoleDownloadsWanted, ConsoleDownloadRow>(tx, DOWNLOADS);
  const extensions = walks<ListWanted, ConsoleExtensionRow>(tx, EXTENSIONS);
  const openSessions = queries(tx).values<[string], string>(`
    SELECT id FROM sessions INDEXED BY sessions_open_by_context
    WHERE context_id = ? AND status IN ('PENDING', 'RUNNING')
    ORDER BY id DESC LIMIT ${SESSIONS_NAMED}`);
  return {
    consoleContexts(wanted) {
      const { rows, next } = contexts(wanted, ROWS_MAX);
      return { rows: rows.map((row) => ({ ...row, sessionIds: openSessions(row.id) })), next };
    },
    consoleDownloads: (wanted) => downloads(wanted, ROWS_MAX),
    consoleExtensions: (wanted) => extensions(wanted, ROWS_MAX),
  };
}
