/**
 * Core: owns the state and is its only writer. Every start is a recovery: acquire the lock,
 * migrate, recount the queues, give each lease a full term, remove files without a row, listen.
 * After a failed commit the outcome of waiting operations is unknown: they receive OUTCOME_UNKNOWN,
 * and the process exits with code 70.
 */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory, readToken } from '../proto/common/durable.ts';
import { DataError } from '../proto/common/env.ts';
import type { Log } from '../proto/common/log.ts';
import { type Metrics, NO_METRICS } from '../proto/common/metrics.ts';
import type { OnError } from '../proto/rpc/local.ts';
import { type AllHandlers, type Clients, localClients } from '../proto/rpc/services.ts';
import { authenticator, type TokenRole, type Tokens } from './api/authentication.ts';
import { listen } from './api/grpc-server.ts';
import { openSealer, type Sealer } from './common/sealer.ts';
import { ageOf, tokenFile } from './common/secret-files.ts';
import type { CoreConfig } from './config.ts';
import { openKeyPool } from './contexts/key-pool.ts';
import { DISK_RULE, type DiskRule, openDisk } from './files/disk-space.ts';
import { openBlobs } from './files/open-blobs.ts';
import { startSchedules } from './functions/schedules/run-due.ts';
import { removeLeft } from './maintenance/backup/create.ts';
import { HELD, type SchedulerClock, schedulerClock, startSteps } from './maintenance/clock.ts';
import { type Damage, openChecked, openDamage } from './maintenance/damage.ts';
import { type DatabaseClock, followDatabase } from './maintenance/database-clock.ts';
import { watchCore } from './maintenance/metrics.ts';
import { type Notices, openNotices } from './maintenance/notices.ts';
import { type DatabaseServer, openOwnProblem, openReadiness } from './maintenance/readiness.ts';
import { startRetention } from './maintenance/retention.ts';
import { openConsoleLogins } from './projects/console-logins.ts';
import { ensureProject, type FirstStart, openFirstKey } from './projects/first-key.ts';
import { openQuotas } from './projects/quotas.ts';
import { startSweep } from './runners/lease-sweep.ts';
import { allHandlers, type CoreDeps, invocationDeps } from './services.ts';
import { shareTokens } from './sessions/share-tokens.ts';
import { databaseProblem } from './store/server.ts';
import type { Store } from './store/types.ts';
import { openValidator } from './validation/validator.ts';
import { startHeartbeat } from './webhooks/heartbeat.ts';

// The only file of core that `tabern serve` may load.
export { printable, readCoreConfig } from './config.ts';
export { loadPostgres } from './store/server.ts';

/** In milliseconds: a smaller difference is not logged. */
const CLOCK_BEHIND_MS = 60_000;
/** Time for answers to waiting calls before the process exits. */
const FATAL_DELAY_MS = 100;
/** EX_SOFTWARE: after a failed write with an unknown outcome. A restart recovers. */
const FATAL_EXIT_CODE = 70;
const SECOND_TOKEN = 'a second token is accepted until its change is finished';
/** EX_CONFIG: a restart does not help, the operator must act. */
const FINAL_EXIT_CODE = 78;

export type Core = AsyncDisposable & {
  /** In this process. */
  clients: Clients;
  handlers: AllHandlers;
  /** Address of the gRPC server in grpc-js syntax. */
  address: string;
  /** Until a key of the default project is used. */
  firstStart?: FirstStart;
  /** Why core itself accepts no work, whatever its runners do; undefined when it does. */
  problem(): Promise<string | undefined>;
  /** Accepts no new sessions, runs and builds from now on, and starts no schedules. */
  drain(): void;
  close(): Promise<void>;
};

export type CoreOptions = {
  /** Instead of the machine's clocks. */
  now?: () => number;
  /** Instead of exiting the process. */
  onFatal?: (error: Error) => void;
  metrics?: Metrics;
  /** Smaller values, for tests. */
  disk?: DiskRule;
};

/**
 * Starts core on its data directory. Throws ConfigError when the directory cannot be used, and its
 * subclass DataError when only the operator can repair it.
 */
export async function startCore(
  config: CoreConfig,
  log: Log,
  options: CoreOptions = {},
): Promise<Core> {
  makeDirectory(config.dataDir);
  const damage = openDamage(config.dataDir, log);
  try {
    const notices = openNotices(log, options.now ?? Date.now);
    return await start(config, notices, { ...options, damage });
  } catch (error) {
    throw damage.judge(error);
  }
}

async function start(
  config: CoreConfig,
  notices: Notices,
  options: CoreOptions & { damage: Damage },
): Promise<Core> {
  const { log } = notices;
  const { damage, onFatal = (error) => endProcess(damage.judge(error), log) } = options;
  const { dataDir, leaseMs, lostMs, sweepMs, keyPairs: readyTarget } = config;
  const keyFile = (name: string) => join(dataDir, 'keys', name);
  await using opened = new AsyncDisposableStack();
  const store = await openChecked(config, { onFatal, damage, log, opened });
  const clock = await openClock(config, options.now, { store, log, opened });
  const { now, steady, isHeld } = clock;
  if (store.isLeader()) await store.recoverWork({ at: now(), leaseMs });
  const sealer = await openSecrets(store, keyFile('master.key'));
  const tokens = openTokens(config, keyFile, log);
  const first = openFirstKey(keyFile('first.key'), { sealer, log });
  const base = { store, sealer, log, now, isHeld: keepsAll(clock, store) };
  const blobs = await openStorage(config, { ...base, opened }, options);
  const keys = opened.use(openKeyPool({ store, sealer, log, now, readyTarget }));
  opened.use(await startHeartbeat({ store, log, now }));
  opened.use(startSweep({ store, log, now, leaseMs, lostMs, sweepMs }));
  opened.use(startRetention(config, { ...base, ...blobs }));
  const validator = opened.use(openValidator());
  const watch = await openWatch(config, { store, log, clock, opened }, options);
  if ('step' in clock) opened.use(startSteps({ clock, store, log, ...watch, ...config, onFatal }));
  const [closing, draining] = [new AbortController(), new AbortController()];
  const state = { ...base, ...blobs, isHeld, keys, validator, steady, notices };
  const callers = openCallers(state, { tokens, onFirstUse: first.used });
  const quotas = openQuotas({ store, defaults: config.quotas });
  const ends = { draining: draining.signal, closing: closing.signal };
  const deps = { ...state, ...watch, ...callers, quotas, ...ends, wall: options.now ?? Date.now };
  const schedules = opened.use(startSchedules({ ...invocationDeps(deps, config), ...watch, log }));
  const handlers = allHandlers(deps, config);
  const onError: OnError = (error, rpc) => log.error({ err: error.cause ?? error, rpc }, 'failed');
  const grpc = await listen({ ...config, ...callers, log }, handlers, onError);
  opened.defer(() => endCalls(closing, grpc));
  const firstStart = await ensureProject({ store, first }, config, now());
  const close = closerOf(opened.move(), damage);
  return {
    clients: localClients(handlers, { onError }),
    handlers,
    address: grpc.address,
    ...(firstStart && { firstStart }),
    problem: openOwnProblem(deps),
    drain: () => startNothing(draining, schedules),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Calls that wait end with DRAINING. */
async function endCalls(closing: AbortController, grpc: { close(): Promise<void> }) {
  closing.abort();
  await grpc.close();
}

function serverOf({ database }: CoreConfig, clock: Clock): DatabaseServer | undefined {
  if (database === undefined) return undefined;
  const offMs = 'machineOffMs' in clock ? clock.machineOffMs : () => 0; // a given clock
  const isOne = database.directUrl === database.url;
  const lineSetting = isOne ? 'TABERN_DATABASE_URL' : 'TABERN_DATABASE_DIRECT_URL';
  return { problemOf: databaseProblem, offMs, lineSetting };
}

function closerOf(opened: AsyncDisposableStack, damage: Damage): () => Promise<void> {
  return async () => {
    await opened.disposeAsync();
    damage.clear(); // a closed core did not fail
  };
}

/** Of several cores, one removes what is old. */
function keepsAll({ isHeld }: Pick<SchedulerClock, 'isHeld'>, store: Store): () => boolean {
  return () => isHeld() || !store.isLeader();
}

function startNothing(draining: AbortController, schedules: AsyncDisposable): void {
  draining.abort();
  void schedules[Symbol.asyncDispose]();
}

async function openStorage(
  config: CoreConfig,
  deps: Omit<Parameters<typeof openBlobs>[1], 'metrics'>,
  { metrics = NO_METRICS }: CoreOptions,
) {
  await removeLeft(config.dataDir);
  return await openBlobs(config, { ...deps, metrics });
}

/** Disk space, the database's server, readiness and metrics. */
async function openWatch(
  config: CoreConfig,
  deps: Pick<CoreDeps, 'store' | 'log'> & { clock: Clock; opened: AsyncDisposableStack },
  { metrics = NO_METRICS, disk: rule = DISK_RULE }: CoreOptions,
) {
  const { dataDir, leaseMs } = config;
  const { store, log, clock, opened } = deps;
  const { now, steady } = clock;
  const disk = opened.use(openDisk({ dir: dataDir, log, rule }));
  const readiness = openReadiness({ store, now: steady, leaseMs });
  if (metrics !== NO_METRICS) await watchCore(metrics, { store, disk, readiness, now });
  return { disk, readiness, metrics, server: serverOf(config, clock) };
}

/** That of a database's server, of this machine, or a given one. */
type Clock = SchedulerClock | DatabaseClock | Pick<SchedulerClock, 'now' | 'steady' | 'isHeld'>;

/** A given clock is moved by its owner. */
async function openClock(
  { clockSettleMs: settleMs, leaseMs, database }: CoreConfig,
  given: CoreOptions['now'],
  { store, log, opened }: Pick<CoreDeps, 'store' | 'log'> & { opened: AsyncDisposableStack },
): Promise<Clock> {
  if (given !== undefined) return { now: given, steady: given, isHeld: () => false };
  if (database !== undefined) return opened.use(await followDatabase({ store, log, leaseMs }));
  const written = await store.lastTime();
  const behindMs = written - Date.now();
  if (behindMs > CLOCK_BEHIND_MS) {
    log.warn({ behindMs }, "this machine's clock is behind the last stored time: continuing there");
  }
  const clock = schedulerClock(written, settleMs);
  if (clock.isHeld()) log.warn({ absentMs: -behindMs }, HELD);
  return clock;
}

/** Who may call: logins of the console, links to sessions, API keys and tokens. */
function openCallers(
  { store, sealer, now, steady }: Pick<CoreDeps, 'store' | 'sealer' | 'now' | 'steady'>,
  given: { tokens: Tokens; onFirstUse: (keyId: string) => void },
) {
  const logins = openConsoleLogins({ store, tokens: given.tokens, now, steady });
  const shares = shareTokens({ sealer, store, now });
  const callers = { loginCaller: logins.caller, shareCaller: shares.read };
  return { logins, shares, ...authenticator({ store, now, steady, ...given, ...callers }) };
}

/** Settings, or files; `<role>.token.next` exists while `tabern tokens` changes one. */
function openTokens(
  { tokens, nextTokens }: Pick<CoreConfig, 'tokens' | 'nextTokens'>,
  keyFile: (name: string) => string,
  log: Log,
): Tokens {
  const current = (role: TokenRole) => tokens[role] ?? tokenFile(keyFile(`${role}.token`));
  const next = (role: TokenRole) => {
    const setting = nextTokens[role];
    if (setting !== undefined) {
      log.warn({ setting: `TABERN_${role.toUpperCase()}_TOKEN_NEXT` }, SECOND_TOKEN);
      return setting;
    }
    const path = keyFile(`${role}.token.next`);
    if (!existsSync(path)) return undefined;
    log.warn({ path, age: ageOf(statSync(path).mtimeMs) }, SECOND_TOKEN);
    return readToken(path);
  };
  return {
    runner: current('runner'),
    gateway: current('gateway'),
    operator: current('operator'),
    next: { runner: next('runner'), gateway: next('gateway'), operator: next('operator') },
  };
}

async function openSecrets(store: Store, path: string): Promise<Sealer> {
  const known = (await store.masterKeyCheck()) ?? null;
  const { sealer, check } = openSealer(path, known);
  if (known !== null) return sealer;
  await store.setMasterKeyCheck(check);
  // Another core that starts on the same database may have been the first, with another key.
  return openSealer(path, (await store.masterKeyCheck()) ?? check).sealer;
}

function endProcess(error: unknown, log: Log): void {
  log.fatal({ err: error }, 'the store failed: exiting');
  const isFinal = error instanceof DataError;
  if (isFinal) process.stderr.write(`tabern: ${error.message}\n`);
  setTimeout(() => process.exit(isFinal ? FINAL_EXIT_CODE : FATAL_EXIT_CODE), FATAL_DELAY_MS);
}
