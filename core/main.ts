/**
 * Core: owns the state and is its only writer. Every start is a recovery: acquire the lock,
 * migrate, recount the queues, give each lease a full term, remove files without a row, listen.
 * After a failed commit the outcome of waiting operations is unknown: they receive OUTCOME_UNKNOWN,
 * and the process exits with code 70.
 */
import { join } from 'node:path';
import { makeDirectory } from '../proto/common/durable.ts';
import { DataError } from '../proto/common/env.ts';
import type { Log } from '../proto/common/log.ts';
import { type Metrics, NO_METRICS } from '../proto/common/metrics.ts';
import type { OnError } from '../proto/rpc/local.ts';
import { type AllHandlers, type Clients, localClients } from '../proto/rpc/services.ts';
import { authenticator, type Tokens } from './api/authentication.ts';
import { listen } from './api/grpc-server.ts';
import { openSealer, type Sealer } from './common/sealer.ts';
import { tokenFile } from './common/secret-files.ts';
import type { CoreConfig } from './config.ts';
import { openKeyPool } from './contexts/key-pool.ts';
import { openBlobFiles } from './files/blob-files.ts';
import { DISK_RULE, type DiskRule, openDisk } from './files/disk-space.ts';
import { startBlobSweep } from './files/orphan-sweep.ts';
import { startScrub } from './files/scrub.ts';
import { startSchedules } from './functions/schedules/run-due.ts';
import { removeLeft } from './maintenance/backup/create.ts';
import { HELD, type SchedulerClock, schedulerClock, startSteps } from './maintenance/clock.ts';
import { type Damage, openChecked, openDamage } from './maintenance/damage.ts';
import { watchCore } from './maintenance/metrics.ts';
import { type Notices, openNotices } from './maintenance/notices.ts';
import { openReadiness } from './maintenance/readiness.ts';
import { startRetention } from './maintenance/retention.ts';
import { openConsoleLogins } from './projects/console-logins.ts';
import { ensureProject, type FirstStart, openFirstKey } from './projects/first-key.ts';
import { openQuotas } from './projects/quotas.ts';
import { startSweep } from './runners/lease-sweep.ts';
import { allHandlers, type CoreDeps, invocationDeps } from './services.ts';
import { shareTokens } from './sessions/share-tokens.ts';
import type { Store } from './store/types.ts';
import { openValidator } from './validation/validator.ts';
import { startHeartbeat } from './webhooks/heartbeat.ts';

// The only file of core that `tabern serve` may load.
export { printable, readCoreConfig } from './config.ts';

/** In milliseconds: a smaller difference is not logged. */
const CLOCK_BEHIND_MS = 60_000;
/** Time for answers to waiting calls before the process exits. */
const FATAL_DELAY_MS = 100;
/** EX_SOFTWARE: after a failed write with an unknown outcome. A restart recovers. */
const FATAL_EXIT_CODE = 70;
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
  const { damage, metrics = NO_METRICS } = options;
  const { onFatal = (error) => endProcess(damage.judge(error), log) } = options;
  const { dataDir, leaseMs, sweepMs, keyPairs: readyTarget } = config;
  const keyFile = (name: string) => join(dataDir, 'keys', name);
  await using opened = new AsyncDisposableStack();
  const store = await openChecked(config, { onFatal, damage, opened });
  const clock = await openClock(config, options.now, { store, log });
  const { now, steady, isHeld } = clock;
  await store.recoverWork({ at: now(), leaseMs });
  const sealer = await openSecrets(store, keyFile('master.key'));
  const tokens = openTokens(keyFile);
  const first = openFirstKey(keyFile('first.key'), { sealer, log });
  const files = await openBlobs(dataDir, { store, log, now, isHeld, metrics, opened });
  const keys = opened.use(openKeyPool({ store, sealer, log, now, readyTarget }));
  opened.use(await startHeartbeat({ store, log, now }));
  opened.use(startSweep({ store, log, now, leaseMs, sweepMs }));
  opened.use(startRetention(config, { store, files, log, now, isHeld }));
  const validator = opened.use(openValidator());
  const watch = await openWatch(config, { store, log, now, steady, opened }, options);
  if ('step' in clock) opened.use(startSteps({ clock, store, log, ...watch, ...config, onFatal }));
  const closing = new AbortController();
  const state = { store, files, sealer, keys, validator, log, now, steady, isHeld, notices };
  const callers = openCallers(state, { tokens, onFirstUse: first.used });
  const wall = options.now ?? Date.now;
  const quotas = openQuotas({ store, defaults: config.quotas });
  const deps = { ...state, ...watch, ...callers, quotas, wall, closing: closing.signal };
  opened.use(startSchedules({ ...invocationDeps(deps, config), ...watch, log }));
  const handlers = allHandlers(deps, config);
  const onError: OnError = (error, rpc) => log.error({ err: error.cause ?? error, rpc }, 'failed');
  const server = await listen(join(dataDir, 'core.sock'), handlers, onError);
  opened.defer(() => server.close());
  opened.defer(() => closing.abort());
  const firstStart = await ensureProject({ store, first }, config, now());
  const moved = opened.move();
  const close = async () => {
    await moved.disposeAsync();
    damage.clear(); // a closed core did not fail
  };
  return {
    clients: localClients(handlers, { onError }),
    handlers,
    address: server.address,
    ...(firstStart && { firstStart }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

type BlobDeps = Pick<CoreDeps, 'store' | 'log' | 'now' | 'isHeld' | 'metrics'>;

async function openBlobs(dataDir: string, deps: BlobDeps & { opened: AsyncDisposableStack }) {
  await removeLeft(dataDir);
  const folder = join(dataDir, 'blobs');
  const files = await openBlobFiles(folder, deps.log);
  deps.opened.use(await startBlobSweep({ ...deps, files, folder }));
  deps.opened.use(startScrub({ ...deps, folder }));
  return files;
}

/** Disk space, readiness and metrics. */
async function openWatch(
  { dataDir, leaseMs }: CoreConfig,
  deps: Pick<CoreDeps, 'store' | 'log' | 'now' | 'steady'> & { opened: AsyncDisposableStack },
  { metrics = NO_METRICS, disk: rule = DISK_RULE }: CoreOptions,
) {
  const { store, log, now, steady, opened } = deps;
  const disk = opened.use(openDisk({ dir: dataDir, log, rule }));
  const readiness = openReadiness({ now: steady, leaseMs });
  if (metrics !== NO_METRICS) await watchCore(metrics, { store, disk, readiness, now });
  return { disk, readiness, metrics };
}

/** A given clock is moved by its owner. */
async function openClock(
  { clockSettleMs: settleMs }: CoreConfig,
  given: CoreOptions['now'],
  { store, log }: Pick<CoreDeps, 'store' | 'log'>,
): Promise<SchedulerClock | Pick<SchedulerClock, 'now' | 'steady' | 'isHeld'>> {
  if (given !== undefined) return { now: given, steady: given, isHeld: () => false };
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

function openTokens(keyFile: (name: string) => string): Tokens {
  const token = (name: string) => tokenFile(keyFile(`${name}.token`));
  return { runner: token('runner'), gateway: token('gateway'), operator: token('operator') };
}

async function openSecrets(store: Store, path: string): Promise<Sealer> {
  const known = (await store.masterKeyCheck()) ?? null;
  const { sealer, check } = openSealer(path, known);
  if (known === null) await store.setMasterKeyCheck(check);
  return sealer;
}

function endProcess(error: unknown, log: Log): void {
  log.fatal({ err: error }, 'the store failed: exiting');
  const isFinal = error instanceof DataError;
  if (isFinal) process.stderr.write(`tabern: ${error.message}\n`);
  setTimeout(() => process.exit(isFinal ? FINAL_EXIT_CODE : FATAL_EXIT_CODE), FATAL_DELAY_MS);
}
