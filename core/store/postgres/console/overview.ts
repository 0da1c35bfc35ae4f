/** The state of a project, and what failed lately. */
import type { Steps } from '../../operations/steps.ts';
import type {
  ConsoleOps,
  FailingFunctionRow,
  FailingWebhookRow,
  OverviewRow,
} from '../../types/console.ts';
import { plannedAnew } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

/** FAILED invocations that are counted. */
const FAILED_MAX = 1_000;
/** Functions and webhooks that are named. */
const NAMED_MAX = 20;

type Queue = { kind: string; ready: number; running: number; cap: number };
type Failure = { id: string; functionId: string; failedAt: number };

export function consoleOverviewOps(tx: Tx): InReads<Pick<ConsoleOps, 'consoleOverview'>> {
  const { project, sessions, queues, webhooks, ...has } = overviewReads(tx);
  const failing = failingFunctions(tx);
  return {
    *consoleOverview({ projectId, since }) {
      const reads = {
        queues: queues(projectId),
        sessions: sessions(projectId),
        webhooks: webhooks(projectId),
        hasSessions: has.hasSessions(projectId),
        hasFunctions: has.hasFunctions(projectId),
        hasWebhooks: has.hasWebhooks(projectId),
      };
      const found = yield* project(projectId);
      if (found === undefined) return undefined;
      const byKind = new Map((yield* reads.queues).map((queue) => [queue.kind, queue]));
      const of = (kind: string) => byKind.get(kind) ?? { kind, ready: 0, running: 0, cap: 0 };
      const [invocation, build] = [of('invocation'), of('build')];
      const failed = (yield* reads.webhooks).sort((a, b) => sinceOf(a) - sinceOf(b));
      return {
        ...found,
        sessions: yield* reads.sessions,
        sessionsWaiting: of('session').ready,
        invocations: invocation.running,
        invocationsMax: invocation.cap,
        queued: invocation.ready,
        builds: build.ready + build.running,
        failingFunctions: yield* failing(projectId, since),
        failingWebhooks: failed.slice(0, NAMED_MAX),
        hasSessions: yield* reads.hasSessions,
        hasFunctions: yield* reads.hasFunctions,
        hasWebhooks: yield* reads.hasWebhooks,
      };
    },
  };
}

function overviewReads(tx: Tx) {
  const { row, rows, number, exists } = plannedAnew(tx);
  const project = row<[string], Pick<OverviewRow, 'name' | 'sessionsMax'>>(
    'SELECT name, concurrency AS "sessionsMax" FROM projects WHERE id = ?',
  );
  // Index jobs_in_limit.
  const sessions = number<[string]>(`
    SELECT COUNT(*) FROM jobs WHERE project_id = ? AND kind = 'session' AND released_at IS NULL`);
  // The primary key; three kinds.
  const queues = rows<[string], Queue>(`
    SELECT kind, ready, running, cap FROM queues
    WHERE kind IN ('invocation', 'build', 'session') AND project_id = ?`);
  const has = {
    hasSessions: exists<[string]>('SELECT 1 FROM sessions WHERE project_id = ? LIMIT 1'),
    hasFunctions: exists<[string]>(
      'SELECT 1 FROM functions WHERE project_id = ? AND deleted_at IS NULL LIMIT 1',
    ),
    hasWebhooks: exists<[string]>(
      `SELECT 1 FROM webhooks WHERE project_id = ? AND status <> 'deleted' LIMIT 1`,
    ),
  };
  // Index webhooks_by_project; a project has at most 100.
  const webhooks = rows<[string], FailingWebhookRow>(`
    SELECT id, endpoint, status, first_failure_at AS "failingSince",
      disabled_reason AS "disabledReason"
    FROM webhooks WHERE project_id = ? AND status <> 'deleted'
      AND (status = 'disabled' OR first_failure_at IS NOT NULL)`);
  return { project, sessions, queues, webhooks, ...has };
}

/** One that an operator disabled may never have failed. */
function sinceOf({ failingSince }: FailingWebhookRow): number {
  return failingSince ?? Number.MAX_SAFE_INTEGER;
}

function failingFunctions(
  tx: Tx,
): (projectId: string, since: number) => Steps<FailingFunctionRow[]> {
  const { row, rows } = plannedAnew(tx);
  // Index invocations_failed, newest first.
  const failures = rows<[string, number], Failure>(`
    SELECT id, function_id AS "functionId", created_at AS "failedAt"
    FROM invocations
    WHERE project_id = ? AND status = 'FAILED' AND created_at >= ?
    ORDER BY created_at DESC, id DESC LIMIT ${FAILED_MAX}`);
  const named = row<[string], { name: string; cause: string | null }>(`
    SELECT functions.name AS name, cause FROM invocations
    JOIN functions ON functions.id = function_id AND functions.deleted_at IS NULL
      AND functions.project_id = invocations.project_id
    WHERE invocations.id = ?`);
  return function* (projectId, since) {
    const byFunction = Object.values(
      Object.groupBy(yield* failures(projectId, since), ({ functionId }) => functionId),
    );
    const most = byFunction.sort((a = [], b = []) => b.length - a.length);
    const shown: FailingFunctionRow[] = [];
    for (const all of most) {
      const [newest] = all ?? [];
      const found = newest && (yield* named(newest.id));
      if (newest === undefined || found === undefined) continue;
      const { id: invocationId, functionId: id, failedAt } = newest;
      shown.push({ id, invocationId, failedAt, failed: all?.length ?? 0, ...found });
      if (shown.length === NAMED_MAX) break;
    }
    return shown;
  };
}
