/** Builds as the console lists them. */
import type {
  ConsoleBuildRow,
  ConsoleBuildsWanted,
  ConsoleOps,
  PublishedRow,
} from '../../types/console.ts';
import { queries } from '../engine/statements.ts';
import type { Tx } from '../engine/transaction.ts';
import { SHOWN } from '../work/builds.ts';
import { ROWS_MAX, type Walk, walks } from './walk.ts';

/** Functions of one build that a row names. */
const PUBLISHED_MAX = 20;

const BY_TIME = {
  columns: `id, status, entrypoint, cause, created_at AS createdAt, started_at AS startedAt,
    ended_at AS endedAt`,
  table: 'builds INDEXED BY builds_by_time',
  where: 'project_id = @projectId',
  filter: `(@status IS NULL OR status = @status)
    AND (@text IS NULL OR instr(id, @text) OR instr(lower(entrypoint), @text))
    AND (@functionId IS NULL OR EXISTS (SELECT 1 FROM versions
      WHERE versions.build_id = builds.id AND versions.function_id = @functionId))
    AND ${SHOWN}`,
  at: 'created_at',
  id: 'id',
} satisfies Walk;

export function consoleBuildOps(tx: Tx): Pick<ConsoleOps, 'consoleBuilds'> {
  const page = walks<ConsoleBuildsWanted, Omit<ConsoleBuildRow, 'published'>>(tx, BY_TIME);
  // Index versions_by_build.
  const published = queries(tx).rows<[string], PublishedRow>(`
    SELECT functions.id AS functionId, functions.name AS name, versions.id AS versionId
    FROM versions JOIN functions ON functions.id = versions.function_id
    WHERE versions.build_id = ? AND functions.deleted_at IS NULL
    ORDER BY functions.name LIMIT ${PUBLISHED_MAX}`);
  return {
    consoleBuilds(wanted) {
      const { rows, next } = page(wanted, ROWS_MAX);
      const isPublished = (build: { status: string }) => build.status === 'COMPLETED';
      const shown = rows.map((build) => {
        return { ...build, published: isPublished(build) ? published(build.id) : [] };
      });
      return { rows: shown, next };
    },
  };
}
