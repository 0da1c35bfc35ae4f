/** Lists over all projects, for the operator pages of the console. */
import type { ListWanted } from '../../types/console.ts';
import type {
  OperatorQueueRow,
  OperatorSessionRow,
  OperatorViewOps,
} from '../../types/operator.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { ENTRIES_MAX, type Walk, walks } from './walk.ts';

const ALL = {
  columns: `sessions.id AS id, sessions.project_id AS "projectId", projects.name AS "projectName",
    sessions.status AS status, sessions.created_at AS "createdAt",
    sessions.started_at AS "startedAt", sessions.ended_at AS "endedAt", end_reason AS "endReason",
    EXISTS (SELECT 1 FROM jobs WHERE jobs.released_at IS NOT NULL AND jobs.id = COALESCE(
      (SELECT invocations.id FROM invocations WHERE session_id = sessions.id),
      sessions.id)) AS "isReleased"`,
  table: 'sessions',
  joins: 'JOIN projects ON projects.id = sessions.project_id',
  where: 'TRUE',
  at: 'sessions.created_at',
  id: 'sessions.id',
} satisfies Walk;
const OPEN = {
  ...ALL,
  table: 'sessions',
  where: `sessions.status IN ('PENDING', 'RUNNING')`,
} satisfies Walk;

export function operatorViewOps(tx: Tx): InReads<OperatorViewOps> {
  const { rows } = statements(tx);
  const all = walks<ListWanted, OperatorSessionRow>(tx, ALL);
  const open = walks<ListWanted, OperatorSessionRow>(tx, OPEN);
  // Two queues of a kind for each project, which an operator makes.
  const busy = rows<[number], OperatorQueueRow>(`
    SELECT queues.project_id AS "projectId", projects.name AS "projectName", kind,
      ready AS waiting, running,
      CASE WHEN kind = 'session' THEN concurrency ELSE cap END AS "limit", vtime
    FROM queues JOIN projects ON projects.id = queues.project_id
    WHERE kind IN ('invocation', 'build', 'session') AND (ready > 0 OR running > 0)
    ORDER BY kind, vtime LIMIT ?`);
  // Index jobs_by_runner.
  const held = rows<[], { runnerId: string; running: number }>(`
    SELECT runner_id AS "runnerId", COUNT(*) AS running FROM jobs
    WHERE state = 'running' GROUP BY runner_id`);
  return {
    *allSessions({ isOpen, ...wanted }) {
      const page = { ...wanted, projectId: '', from: 0, to: Number.MAX_SAFE_INTEGER };
      return yield* (isOpen ? open : all)(page, ENTRIES_MAX);
    },
    busyQueues: busy,
    heldWork: held,
  };
}
