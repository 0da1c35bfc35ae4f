/**
 * The lease of a job in PostgreSQL. The first one of an operation is looked for while the rule's
 * facts are read, and locked; a further one takes a round trip of its own.
 */
import { must } from '../../../../proto/common/must.ts';
import type { LeasedJob, QueueStatements } from '../../operations/queue.ts';
import type { Read, Steps } from '../../operations/steps.ts';
import { statements } from '../engine/statements.ts';
import { mapped } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { JOB_COLUMNS, lockedQueues, SESSION } from './queue.ts';

/** Of a queue whose project may have a further job. `mayHold`: an expression. */
const hasWork = (mayHold: string) =>
  `kind = @kind AND ready > 0 AND running < cap AND running <= ${mayHold}`;
const HAS_WORK = hasWork('@mayHold::BIGINT');
/** Counters that nobody holds. */
const free = (work: string) => `
  SELECT project_id FROM queues WHERE ${work} ORDER BY vtime LIMIT 1 FOR UPDATE SKIP LOCKED`;
/** Waits for the first ones; none when they have changed meanwhile, but their lock is kept. */
const FIRST = `
  SELECT project_id FROM queues
  WHERE ${HAS_WORK}
    AND project_id = (SELECT project_id FROM queues WHERE ${HAS_WORK} ORDER BY vtime LIMIT 1)
  FOR UPDATE`;
/** The oldest job of the project in `project`. Index jobs_ready. */
const OLDEST = `
  FROM jobs
  WHERE kind = @kind AND project_id = (SELECT project_id FROM project) AND state = 'ready'
  ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED`;
/** With at most one job in `found`. */
const next = (work: string) => `
  (SELECT project_id FROM project) AS "lockedId",
  (SELECT COALESCE(SUM(ready), 0) FROM (
    SELECT ready FROM queues WHERE ${work} LIMIT 2) AS queue) > (found.id IS NOT NULL)::INTEGER
    AS "hasMore"`;

const TO_RUNNING = `
  UPDATE jobs SET state = 'running', runner_id = @runnerId, instance_id = @instanceId,
    lease_id = @leaseId, lease_until = @leaseUntil`;

/** Index queues_next. `project`: the statement that locks a project's counters. */
const leaseOf = (project: string) => `
  WITH project AS (${project}),
  found AS (
    ${TO_RUNNING}
    WHERE id = (SELECT id ${OLDEST})
    RETURNING ${JOB_COLUMNS}, ${SESSION})
  SELECT found.*, ${next(HAS_WORK)} FROM (VALUES (1)) AS always LEFT JOIN found ON TRUE`;

/** Whether keys of more than one project are valid. */
const SEVERAL_PROJECTS = `EXISTS (
  SELECT 1 FROM api_keys WHERE revoked_at IS NULL AND project_id <>
    (SELECT project_id FROM api_keys WHERE revoked_at IS NULL LIMIT 1))`;

/** Index jobs_by_runner. */
const HELD = `
  SELECT COUNT(*) FROM jobs WHERE runner_id = @runnerId AND kind = @kind AND state = 'running'`;

const AHEAD_WORK = hasWork('(SELECT "mayHold" FROM runner)');
/**
 * The facts of the rule, and the job that is next if the rule decides by them as it said before. It
 * is locked, and not changed: where the rule decides otherwise, the job is not used. Its columns
 * are those of the locked row, and the id of its session never changes.
 */
const AHEAD = `
  WITH facts AS MATERIALIZED (SELECT (${HELD}) AS held, ${SEVERAL_PROJECTS} AS several),
  runner AS MATERIALIZED (
    SELECT held, several,
      CASE WHEN held >= @from::BIGINT AND several THEN @reserved::BIGINT ELSE @usually::BIGINT END
        AS "mayHold"
    FROM facts),
  project AS (${free(AHEAD_WORK)}),
  found AS (SELECT ${JOB_COLUMNS}, ${SESSION} ${OLDEST})
  SELECT runner.*, found.*, ${next(AHEAD_WORK)} FROM runner LEFT JOIN found ON TRUE`;

type Next = LeasedJob & { lockedId: string | null; hasMore: boolean };
type Ahead = Next & { held: number; several: boolean; mayHold: number };
type Looked = { facts?: Read<Ahead>; isUsed: boolean };

const LOOKED = {};

/** What the running operation has looked for. */
function lookedFor(tx: Tx): Looked {
  return tx.memory(LOOKED, () => ({ isUsed: false }));
}

type Leases = Pick<
  QueueStatements,
  'lookAhead' | 'heldBy' | 'haveSeveralProjectsKeys' | 'instance' | 'lease'
>;

export function leaseJobStatements(tx: Tx): Leases {
  const { row, returned } = statements(tx);
  const lookAhead = returned<[object], Ahead>(AHEAD);
  const facts = () => must(lookedFor(tx).facts, 'a look ahead');
  return {
    ...leaseStatement(tx),
    lookAhead({ mayHold, ...wanted }) {
      lookedFor(tx).facts = lookAhead({ ...wanted, ...mayHold });
    },
    heldBy: () => mapped(facts(), ({ held }) => held),
    haveSeveralProjectsKeys: () => mapped(facts(), ({ several }) => several),
    instance: row(`
      SELECT drained_at AS "drainedAt" FROM runners
      WHERE id = @runnerId AND instance_id = @instanceId`),
  };
}

function leaseStatement(tx: Tx): Pick<QueueStatements, 'lease'> {
  const { returned, write } = statements(tx);
  const lease = returned<[object], Next>(leaseOf(free(HAS_WORK)));
  const first = returned<[object], Next>(leaseOf(FIRST));
  const take = write<[object]>(`${TO_RUNNING} WHERE id = @id`);
  const mark = write<[]>('SAVEPOINT waiting');
  const unlock = write<[]>('ROLLBACK TO SAVEPOINT waiting');

  /**
   * Holds the counters of one project at a time: who locks several does it in another order. Each
   * further round follows another operation's commit.
   */
  function* afterOthers(wanted: object): Steps<Next> {
    mark();
    for (;;) {
      const found = yield* first(wanted);
      if (found.lockedId !== null || !found.hasMore) return found;
      unlock();
    }
  }

  /** Once; undefined where the rule has decided otherwise. */
  function* expected(mayHold: number): Steps<Ahead | undefined> {
    const looked = lookedFor(tx);
    if (!looked.facts || looked.isUsed) return undefined;
    looked.isUsed = true;
    const ahead = yield* looked.facts;
    return ahead.mayHold === mayHold ? ahead : undefined;
  }

  return {
    /**
     * Waits for counters that another operation holds only where no others are free, and never
     * while it holds some: two such operations would wait for each other.
     */
    *lease(wanted) {
      const ahead = yield* expected(wanted.mayHold);
      const now = ahead ?? (yield* lease(wanted));
      const mayWait = now.lockedId === null && lockedQueues(tx).size === 0;
      const next = now.hasMore && mayWait ? yield* afterOthers(wanted) : now;
      // It has found the jobs that waited before it held the counters; others have leased those.
      const isLate = next.id === null && next.lockedId !== null;
      const found = isLate ? yield* lease(wanted) : next;
      const { lockedId, hasMore, ...job } = found;
      if (lockedId !== null) lockedQueues(tx).add(wanted.kind + lockedId);
      if (job.id === null) return { job: undefined, hasMore };
      if (found === ahead) take({ ...wanted, id: job.id });
      const { leaseId, leaseUntil } = wanted;
      return { job: { ...job, state: 'running', leaseId, leaseUntil }, hasMore };
    },
  };
}
