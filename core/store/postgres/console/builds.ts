/** Builds as the console lists them. */
import type {
  ConsoleBuildRow,
  ConsoleBuildsWanted,
  ConsoleOps,
  PublishedRow,
} from '../../types/console.ts';
import { statements } from '../engine/statements.ts';
import { found, type InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { SHOWN } from '../work/builds.ts';
import { ROWS_MAX, type Walk, walks } from './walk.ts';

/** Functions of one build that a row names. */
const PUBLISHED_MAX = 20;

const BY_TIME = {
  columns: `id, status, entrypoint, cause, created_at AS "createdAt", started_at AS "startedAt",
    ended_at AS "endedAt"`,
  table: 'builds',
  where: 'project_id = @projectId',
  filter: `(@status::TEXT IS NULL OR status = @status)
    AND (@text::TEXT IS NULL OR strpos(id, @text) > 0 OR strpos(lower(entrypoint), @text) > 0)
    AND (@functionId::TEXT IS NULL OR EXISTS (SELECT 1 FROM versions
      WHERE versions.build_id = builds.id AND versions.function_id = @functionId))
    AND ${SHOWN}`,
  at: 'created_at',
  id: 'id',
} satisfies Walk;

export function consoleBuildOps(tx: Tx): InReads<Pick<ConsoleOps, 'consoleBuilds'>> {
  const page = walks<ConsoleBuildsWanted, Omit<ConsoleBuildRow, 'published'>>(tx, BY_TIME);
  // Index versions_by_build.
  const published = statements(tx).rows<[string], PublishedRow>(`
    SELECT functions.id AS "functionId", functions.name AS name, versions.id AS "versionId"
    FROM versions JOIN functions ON functions.id = versions.function_id
    WHERE versions.build_id = ? AND functions.deleted_at IS NULL
    ORDER BY functions.name LIMIT ${PUBLISHED_MAX}`);
  return {
    *consoleBuilds(wanted) {
      const { rows, next } = yield* page(wanted, ROWS_MAX);
      const reads = rows.map(({ id, status }) =>
        status === 'COMPLETED' ? published(id) : found([]),
      );
      const shown: ConsoleBuildRow[] = [];
      for (const [at, build] of rows.entries()) {
        shown.push({ ...build, published: yield* reads[at] ?? found([]) });
      }
      return { rows: shown, next };
    },
  };
}
