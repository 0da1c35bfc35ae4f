/**
 * Opens the PostgreSQL engine: migrates the database, then runs each operation on a connection of a
 * pool. Several cores may use one database.
 */
import type { Log } from '../../../proto/common/log.ts';
import { newId } from '../../common/ids.ts';
import { periodically } from '../../common/periodically.ts';
import { crashPoints } from '../crash-points.ts';
import type { Topic } from '../messages.ts';
import { openSyncs } from '../syncs.ts';
import type { Store } from '../types.ts';
import { Watches, watchPoll } from './console/changes.ts';
import { Connection, type ConnectionOptions } from './engine/connection.ts';
import { type Direct, openDirect } from './engine/direct.ts';
import { startError } from './engine/errors.ts';
import { migrate } from './engine/migrate.ts';
import { Pool } from './engine/pool.ts';
import { asynchronous, withoutTransaction } from './engine/steps.ts';
import { type Operation, openRunner, type Runner } from './engine/transaction.ts';
import { Wakes } from './engine/wakes.ts';
import { inPostgres } from './in-postgres.ts';
import { type LockRows, lockedRows } from './locks.ts';
import { clockOps } from './maintenance/clock.ts';
import { EndCounts } from './maintenance/metrics.ts';
import { allOps } from './ops.ts';
import type { Kept } from './other-ops.ts';
import { renumberEvents } from './webhooks/renumber.ts';

export type PostgresOptions = {
  url: string;
  /** Past PgBouncer. */
  directUrl: string;
  isPooled: boolean;
  /** Authorities of the certificates of both, in PEM. */
  ca?: string | undefined;
  durability: 'full' | 'normal';
  crashAt?: string | undefined;
  log: Log;
};

/** In milliseconds. A transaction that waits longer for a lock is repeated. */
const LOCK_TIMEOUT_MS = 5_000;
/** In milliseconds. Each operation examines a limited number of rows. Ours. */
const STATEMENT_TIMEOUT_MS = 14_000;
/**
 * In milliseconds: the server ends a transaction whose core is silent for so long, with its locks.
 * Ours: no operation waits for anything but the database.
 */
const IDLE_TIMEOUT_MS = 10_000;
const LIMITS = [
  `lock_timeout = ${LOCK_TIMEOUT_MS}`,
  `statement_timeout = ${STATEMENT_TIMEOUT_MS}`,
  `idle_in_transaction_session_timeout = ${IDLE_TIMEOUT_MS}`,
];
/** In seconds. Without them the server keeps connections of a machine that is gone for hours. */
const KEEPALIVES = [
  'tcp_keepalives_idle = 30',
  'tcp_keepalives_interval = 10',
  'tcp_keepalives_count = 3',
];
/** In milliseconds: the server would have ended the statement. */
const ANSWER_MAX_MS = STATEMENT_TIMEOUT_MS + 1_000;

/**
 * Operations that a failure of the server may undo: a lost offer of work is repeated, and the first
 * renewal waits for the disk.
 */
const UNPROMISED: ReadonlySet<string> = new Set(['leaseWork']);

/** In milliseconds: how late a console may learn of a change. Ours. */
const WATCH_POLL_MS = 500;

/** Throws ConfigError when the database cannot be used. */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { url, directUrl, isPooled, ca, log } = options;
  const coreId = newId();
  const direct = { url: directUrl, ca, isPooled: false, name: 'tabern core' };
  const isSame = directUrl === url;
  const setting = isSame ? 'TABERN_DATABASE_URL' : 'TABERN_DATABASE_DIRECT_URL';
  await migrated(direct, setting);
  if (!isSame) await checkReachable({ url, ca, isPooled, name: 'tabern' });
  const wakes = new Wakes();
  const line = await openDirect({ connection: direct, setting, coreId, wakes, log });
  const kept = { ends: new EndCounts(), watches: new Watches(coreId) };
  const { runner, pool, syncP95Ms } = openEngine(options, { kept, wakes, line });
  const operations = Object.entries(allOps(runner.tx, kept)) as [string, Operation][];
  const methods = operations.map(([name, operation]) => [
    name,
    (...args: unknown[]) => runner.run(name, operation, args),
  ]);
  const { serverTime: time } = withoutTransaction(clockOps(runner.tx));
  const polling = startWatchPoll(runner, { watches: kept.watches, wakes, log });
  return {
    ...Object.fromEntries(methods),
    onWake: (topic: Topic, listener: () => void) => wakes.onWake(topic, listener),
    snapshot: () => Promise.reject(inPostgres()),
    syncP95Ms,
    serverTime: () => runner.run('serverTime', time, []) as Promise<number>,
    isLeader: line.isLeader,
    lineLostMs: line.lineLostMs,
    sendToCores: line.sendToCores,
    onCoreMessage: line.onCoreMessage,
    async close() {
      await polling[Symbol.asyncDispose]();
      await pool.close();
      await line[Symbol.asyncDispose]();
    },
  } as Store;
}

/** The pool, and what runs operations on it. */
function openEngine(
  { url, ca, isPooled, durability, crashAt }: PostgresOptions,
  { kept, wakes, line }: { kept: Kept; wakes: Wakes; line: Direct },
) {
  // PgBouncer gives the session of one core to another: there, limits are of transactions.
  const settings = isPooled ? [] : [...LIMITS, ...KEEPALIVES];
  const answerMaxMs = ANSWER_MAX_MS;
  const pool = new Pool({ url, ca, isPooled, name: 'tabern', settings, answerMaxMs });
  const syncs = openSyncs();
  let lock: LockRows = () => {};
  const runner = openRunner({
    pool,
    beginOf: (name) => begin(isPooled, durability === 'normal' || UNPROMISED.has(name)),
    needsTransactions: isPooled,
    lock: (name, args) => lock(name, args),
    onCommit(topics: ReadonlySet<Topic>) {
      for (const topic of topics) wakes.wake(topic);
      line.send(topics);
    },
    crashPoint: crashPoints(crashAt),
    onSync: syncs.add,
    onNotice: (notice) => kept.ends.add(notice),
  });
  lock = lockedRows(runner.tx);
  return { runner, pool, syncP95Ms: syncs.p95Ms };
}

/** Wakes the consoles of this core after changes by any core. */
function startWatchPoll(
  runner: Runner,
  { watches, wakes, log }: { watches: Watches; wakes: Wakes; log: Log },
): AsyncDisposable {
  const poll = asynchronous(watchPoll(runner.tx, watches)).pollChanges;
  const run = async (): Promise<void> => {
    if (watches.projectIds.length === 0) return;
    const topics = (await runner.run('pollChanges', poll, [])) as Topic[];
    for (const topic of topics) wakes.wake(topic);
  };
  const failure = 'changes for consoles were not read';
  return periodically(WATCH_POLL_MS, run, { log, failure });
}

/** Over the direct connection, as its lock needs a session. */
async function migrated(options: ConnectionOptions, setting: string): Promise<void> {
  try {
    await using connection = await Connection.open(options);
    await migrate(connection);
    await connection.command('BEGIN');
    await renumberEvents(connection);
    await connection.command('COMMIT');
  } catch (error) {
    throw startError(error, setting);
  }
}

/** Whether operations reach the database, by PgBouncer or not. */
async function checkReachable(options: ConnectionOptions): Promise<void> {
  try {
    await using _ = await Connection.open(options);
  } catch (error) {
    throw startError(error, 'TABERN_DATABASE_URL');
  }
}

/** The start of a transaction, as one message. */
function begin(isPooled: boolean, isUnpromised: boolean): string {
  const settings = isPooled ? [...LIMITS] : [];
  if (isUnpromised) settings.push('synchronous_commit = off');
  return ['BEGIN', ...settings.map((one) => `SET LOCAL ${one}`)].join('; ');
}
