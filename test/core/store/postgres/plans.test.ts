/**
 * Each read of the console, and what workers ask for again and again, finds its rows by an index on
 * PostgreSQL, in the order of the list, with a plan that fits any values: none reads a whole table,
 * none sorts what it has not limited. The tables are large, and their statistics are known.
 */
import postgres from 'postgres';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { removalOperations } from '../../../../core/store/operations/functions/removals.ts';
import type { Read } from '../../../../core/store/operations/steps.ts';
import { auditOps } from '../../../../core/store/postgres/console/audit.ts';
import { Watches } from '../../../../core/store/postgres/console/changes.ts';
import { consoleOps } from '../../../../core/store/postgres/console/console.ts';
import { operatorViewOps } from '../../../../core/store/postgres/console/operator.ts';
import type { Result } from '../../../../core/store/postgres/engine/connection.ts';
import type { Tx } from '../../../../core/store/postgres/engine/transaction.ts';
import {
  certificateOps,
  certificatesOfSession,
} from '../../../../core/store/postgres/files/certificates.ts';
import { contextOps, contextStarts } from '../../../../core/store/postgres/files/contexts.ts';
import { blobOps, extensionsOfSession } from '../../../../core/store/postgres/files/files.ts';
import { retentionOps } from '../../../../core/store/postgres/maintenance/retention.ts';
import {
  removalStatements,
  sessionRetentionOps,
} from '../../../../core/store/postgres/maintenance/work-retention.ts';
import { operatorOps, projectOps } from '../../../../core/store/postgres/projects/projects.ts';
import { secretViews } from '../../../../core/store/postgres/projects/secrets.ts';
import { openOnPostgres, urlOf } from '../../../support/engine.ts';
import { hasPostgres } from '../../../support/postgres.ts';
import { tempDirectory } from '../../../support/temp.ts';
import { FILL, ROWS } from './plan-rows.ts';

const test = suite('core/store/postgres/plans');
/** A small one, and one without rows; what is of the large one may be read by time alone. */
const PROJECTS_READ = ['project-7', 'project-0'];

/** Statements that sort: what they sort is limited by a rule, as the comments beside them say. */
const MAY_SORT = [
  /FROM versions JOIN functions .* ORDER BY functions\.name LIMIT 20/,
  /GROUP BY events\.seq ORDER BY events\.id/,
  /FROM queues JOIN projects/,
  /FROM queues GROUP BY kind/,
  /GROUP BY 1, 2 ORDER BY 1, 2/,
  /FROM deliveries JOIN attempts .* ORDER BY n DESC LIMIT 1/,
  /FROM events JOIN deliveries .* deliveries\.webhook_id DESC LIMIT/, // those of one event
  /UNION SELECT bundle_blob_id/,
  /FROM labels CROSS JOIN LATERAL/,
  /FROM jobs WHERE state = 'running' GROUP BY/,
  /FROM function_secrets JOIN secrets/,
  /UNION SELECT lower\(value\)/,
  /json_array_elements_text/,
  /id = ANY\(\$\d::TEXT\[\]\) .*ORDER BY/,
];
/** Read whole: small, or of one row for each project. */
const SMALL = /(Seq Scan on|Index (Only )?Scan using \w+ on) (projects|queues|webhooks|jobs)\b/g;
/** An index from its beginning, unless it has only a few rows: open ones, deleted ones. */
const FEW_ROWS = String.raw`\w+_deleted|\w+_open_|webhooks_due`;
const WHOLE_INDEX = new RegExp(
  String.raw`Index (?:Only )?Scan (?:Backward )?using (?!${FEW_ROWS})[^\n]*\n(?!\s+Index Cond)`,
);
/**
 * The server prefers other ways for tables as small as these. Without them a plan shows whether an
 * index has the rows in the order of the list.
 */
const ONLY_INDEXES = `
  SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_sort = off;
  SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off`;

type Seen = { text: string; plan: string };
type Sent = { text: string; values: readonly unknown[]; isPlannedAnew: boolean };

/** Explains each statement as it is planned in the engine, for any values or anew, and runs it. */
function explaining(sql: postgres.Sql) {
  const seen = new Map<string, Seen>();
  let last: Promise<unknown> = Promise.resolve();
  async function planOf(text: string, values: readonly unknown[]): Promise<string> {
    const lines = await sql.unsafe(`EXPLAIN ${text}`, [...values] as never[]);
    return lines.map((row) => row['QUERY PLAN']).join('\n');
  }

  async function planOfAny(text: string, count: number): Promise<string> {
    await sql.unsafe(`PREPARE one AS ${text}`);
    const any = Array.from({ length: count }, () => 'NULL').join(', ');
    const plan = await planOf(`EXECUTE one${count > 0 ? `(${any})` : ''}`, []);
    await sql.unsafe('DEALLOCATE one');
    return plan;
  }

  async function one({ text, values, isPlannedAnew }: Sent): Promise<Result> {
    const short = text.replace(/\s+/g, ' ').trim();
    const plan = await (isPlannedAnew ? planOf(text, values) : planOfAny(text, values.length));
    seen.set(`${short} ${plan}`, { text: short, plan });
    return (await sql.unsafe(text, [...values] as never[])) as unknown as Result;
  }
  const tx = {
    send(text: string, values: readonly unknown[], isPlannedAnew = false) {
      const next = last.then(() => one({ text, values, isPlannedAnew }));
      last = next.catch(() => undefined);
      return next;
    },
    wake: () => undefined,
    crashPoint: () => undefined,
    later: () => undefined,
    atEnd: () => undefined,
    memory: (_: object, make: () => unknown) => make(),
  } as unknown as Tx;
  return { tx, seen, settled: () => last };
}

async function run(read: Read<unknown>): Promise<unknown> {
  const steps = read[Symbol.iterator]();
  let step = steps.next();
  while (!step.done) step = steps.next(await step.value);
  return step.value;
}

const removals = (tx: Tx) => removalOperations(removalStatements(tx), tx);
const pageOf = (projectId: string) => ({ projectId, from: 0, to: ROWS + 1, limit: 20 });

/** Each with the filters that have a statement of their own. */
function reads(tx: Tx, projectId: string): Read<unknown>[] {
  return [
    ...workReads(tx, projectId),
    ...consoleReads(tx, projectId),
    ...otherReads(tx, projectId),
  ];
}

function workReads(tx: Tx, projectId: string): Read<unknown>[] {
  const of = consoleOps(tx, new Watches('watcher'));
  const any = pageOf(projectId);
  const owned = (id: string) => ({ id, projectId });
  return [
    of.consoleSessions(any),
    of.consoleSessions({ ...any, status: 'ERROR' }),
    of.consoleSessions({ ...any, text: 'a' }),
    of.consoleSessions({ ...any, text: 'a', status: 'ERROR' }),
    of.consoleSessions({ ...any, labelKey: '00000002' }),
    of.consoleSessions({ ...any, metadata: { keys: ['a'], value: 'b' } }),
    of.consoleSession(owned('s00000001')),
    of.consoleRunning({ projectId, ids: ['s00000003'] }),
    of.consoleSessionCourse(owned('s00000001')),
    of.consoleInvocations(any),
    of.consoleInvocations({ ...any, status: 'FAILED' }),
    of.consoleInvocations({ ...any, functionId: 'f00000001' }),
    of.consoleInvocation(owned('i00000001')),
    of.consoleInvocationSteps(owned('i00000001')),
    of.consoleBuilds(any),
    of.consoleFunctions({ projectId, beforeId: '~', limit: 20 }),
    of.consoleFunctionRuns({ projectId, from: 0, before: { at: ROWS, id: '' }, max: 20 }),
    of.consoleFunction(owned('f00000001')),
    of.consoleVersions({ ...owned(''), functionId: 'f00000001', beforeId: '~', limit: 20 }),
    of.consoleLogLines({ ...owned('i00000001'), from: 0, max: 20 }),
  ];
}

function consoleReads(tx: Tx, projectId: string): Read<unknown>[] {
  const of = consoleOps(tx, new Watches('watcher'));
  const any = pageOf(projectId);
  const owned = (id: string) => ({ id, projectId });
  const counts = { ...any, bucketMs: 1_000 } as const;
  return [
    of.consoleDeliveries(any),
    of.consoleWebhookHealth({
      projectId,
      webhookId: undefined,
      fromDay: 0,
      webhooksMax: 2,
      backlogMax: 5,
    }),
    of.consoleDelivery({
      projectId,
      webhookId: 'w00000002',
      id: 'o00000001',
      attemptsMax: 5,
    }),
    of.consoleSentEvent({ webhookId: 'w00000002', eventId: 'o00000001', attemptsMax: 5 }),
    of.consoleSecrets(owned('w00000001')),
    of.consoleOtherSecrets({ ...owned('w00000001'), max: 5 }),
    of.consoleOverview({ projectId, since: 0 }),
    of.consoleCounts({ ...counts, kind: 'sessions', group: 'reason' }),
    of.consoleCounts({ ...counts, kind: 'invocations', group: 'function' }),
    of.consoleCounts({ ...counts, kind: 'invocations', functionId: 'f00000001' }),
    of.consoleCounts({ ...counts, kind: 'builds' }),
    of.consoleCounts({ ...counts, kind: 'deliveries', group: 'status' }),
    of.consoleFindId({ ...owned('s00000001'), max: 5 }),
    ...Array.from({ length: 12 }, (_, step) =>
      of.consoleFindText({ projectId, text: 'a', step, max: 5 }),
    ),
    of.consoleContexts(any),
    of.consoleDownloads(any),
    of.consoleExtensions(any),
    of.consoleUsage({ projectId, fromDay: 0 }),
    of.consoleLimits(projectId),
    of.purgeUsage({ day: 10, max: 5 }),
  ];
}

function otherReads(tx: Tx, projectId: string): Read<unknown>[] {
  const audit = auditOps(tx);
  const operator = operatorViewOps(tx);
  const starts = contextStarts(tx);
  const any = pageOf(projectId);
  const page = { projectId, before: undefined, limit: 20 };
  const secrets = { ...page, startAt: undefined, endAt: undefined };
  return [
    audit.auditEvents({ ...any, isOfAll: true }),
    audit.auditEvents({ ...any, isOfAll: false }),
    audit.purgeAudit({ before: 10, at: ROWS, max: 5 }),
    operator.allSessions({ isOpen: true, limit: 5 }),
    operator.allSessions({ isOpen: false, limit: 5 }),
    operator.heldWork(),
    projectOps(tx).projectUsage({ id: projectId, at: ROWS }),
    projectOps(tx).findApiKey(Buffer.from('a')),
    operatorOps(tx).revokedKeys(5),
    contextOps(tx).listContexts(page),
    starts.startContext('s00001003'),
    blobOps(tx).listBlobs({ after: '', max: 5 }),
    certificateOps(tx).listCertificates({ projectId, max: 5 }),
    certificateOps(tx).purgeCertificates(5),
    certificatesOfSession(tx)('s00000002'),
    extensionsOfSession(tx)('s00000002'),
    secretViews(tx).listSecrets(secrets),
    secretViews(tx).listFunctionSecrets({ ...secrets, functionId: 'f00000001' }),
    secretViews(tx).sealedSecretsOf({ functionId: 'f00000001', projectId }),
    retentionOps(tx).purgeEvents({ before: 10, at: ROWS, max: 5 }),
    retentionOps(tx).backlogs(5),
    removals(tx).purgeLogs({ beforeId: 'i00000003', max: 5 }),
    removals(tx).purgeInvocations({ before: 10, beforeId: 'i00000009', max: 5 }),
    removals(tx).purgeBuilds({ before: 10, beforeId: 'u00000009', after: '', max: 5 }),
    removals(tx).purgeFunctions({ max: 5 }),
    sessionRetentionOps(tx).purgeSessions({ before: 10, beforeId: 's00000009', after: '', max: 5 }),
  ];
}

if (hasPostgres()) {
  test('no statement reads a table from its beginning, and none sorts a list', async () => {
    await using dir = tempDirectory();
    await (await openOnPostgres(dir.path)).close();
    const sql = postgres(await urlOf(dir.path), { max: 1, prepare: false, onnotice: () => {} });
    try {
      await sql.unsafe(FILL);
      await sql.unsafe(ONLY_INDEXES);
      const { tx, seen, settled } = explaining(sql);
      for (const project of PROJECTS_READ) for (const read of reads(tx, project)) await run(read);
      await settled();
      assert.ok(seen.size > 90, `${seen.size} statements`);
      for (const { text, plan } of seen.values()) {
        const large = plan.replaceAll(SMALL, '');
        assert.not.match(large, /Seq Scan on/, `${text}\n${plan}`);
        assert.not.match(large, WHOLE_INDEX, `${text}\n${plan}`);
        if (MAY_SORT.some((few) => few.test(text))) continue;
        assert.not.match(plan, /Sort Key/, `${text}\n${plan}`);
      }
    } finally {
      await sql.end();
    }
  });
}

test.run();
