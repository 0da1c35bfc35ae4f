/** What the rows about one session say of its course. */
import type { ConsoleOps, SessionCourse } from '../../types/console.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

/** Of each kind. */
const PAGES_MAX = 500;
const DOWNLOADS_MAX = 300;
const DELIVERIES_MAX = 100;

type Session = Omit<SessionCourse, 'pages' | 'downloads' | 'deliveries'>;

export function consoleEventOps(tx: Tx): InReads<Pick<ConsoleOps, 'consoleSessionCourse'>> {
  const { row, rows } = statements(tx);
  const session = row<[object], Session>(`
    SELECT sessions.created_at AS "createdAt", sessions.started_at AS "startedAt",
      sessions.ended_at AS "endedAt", end_reason AS "endReason", invocations.id AS "invocationId",
      (SELECT released_at FROM jobs WHERE jobs.id = COALESCE(invocations.id, sessions.id))
        AS "releasedAt"
    FROM sessions LEFT JOIN invocations ON invocations.session_id = sessions.id
    WHERE sessions.id = @id AND sessions.project_id = @projectId`);
  // The primary key of recordings.
  const pages = rows<[string], SessionCourse['pages'][number]>(`
    SELECT page_id AS "pageId", url, start_ms AS "startMs", end_ms AS "endMs",
      completed_at IS NOT NULL AS "isClosed"
    FROM recordings WHERE session_id = ? ORDER BY page_id LIMIT ${PAGES_MAX}`);
  // Index downloads_by_session.
  const downloads = rows<[string], SessionCourse['downloads'][number]>(`
    SELECT id, filename, size, created_at AS "createdAt"
    FROM downloads WHERE session_id = ? ORDER BY id LIMIT ${DOWNLOADS_MAX}`);
  // Index events_by_resource. An invocation has four events.
  const deliveries = rows<[string], SessionCourse['deliveries'][number]>(`
    SELECT events.id AS id, type AS "eventType", events.created_at AS "createdAt",
      CASE WHEN COUNT(done_at) = COUNT(*) THEN MAX(done_at) ELSE NULL END AS "doneAt"
    FROM events JOIN deliveries ON deliveries.event_id = events.id
    WHERE resource_id = ? GROUP BY events.seq ORDER BY events.id LIMIT ${DELIVERIES_MAX}`);
  return {
    *consoleSessionCourse(wanted) {
      const found = yield* session(wanted);
      if (found === undefined) return undefined;
      const { invocationId } = found;
      return {
        ...found,
        pages: yield* pages(wanted.id),
        downloads: yield* downloads(wanted.id),
        deliveries: invocationId === null ? [] : yield* deliveries(invocationId),
      };
    },
  };
}
