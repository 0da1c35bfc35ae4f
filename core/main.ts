/**
 * Core: owns the state and is its only writer. Start is recovery, there is no other path: take the
 * lock, migrate, recount the queues, give each lease a full term, remove files that nobody names,
 * listen. When a commit fails, the outcome of what waited is unknown: it is said so, and the
 * process ends with code 70.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { cidrList } from '../proto/addresses.ts';
import type { Log } from '../proto/log.ts';
import { type Metrics, NO_METRICS } from '../proto/metrics.ts';
import type { OnError } from '../proto/rpc.ts';
import { type AllHandlers, type Clients, localClients } from '../proto/services.ts';
import { authenticator, hashOf, newApiKey, newPublicId, type Tokens } from './auth.ts';
import { openBlobFiles } from './blobs/files.ts';
import { startBlobSweep } from './blobs/sweep.ts';
import { openChecks } from './checks.ts';
import { startCleaning } from './cleaning.ts';
import { schedulerClock } from './clock.ts';
import type { CoreConfig } from './config.ts';
import { DISK_RULE, type DiskRule, openDisk } from './disk.ts';
import { watchCore } from './figures.ts';
import { startHeartbeat } from './heartbeat.ts';
import { newId } from './ids.ts';
import { openKeyPool } from './keys/pool.ts';
import { DEFAULT_TIMEOUT } from './operators.ts';
import { openReadiness } from './readiness.ts';
import { openSealer, type Sealer } from './seal.ts';
import { tokenFile } from './secret-files.ts';
import { listen } from './server.ts';
import { allHandlers, type Parts } from './services.ts';
import { openStore } from './store/thread.ts';
import type { Store } from './store/types.ts';
import { startSweep } from './sweep.ts';

// `tabern serve` may load this file of core and no other.
export { printable, readCoreConfig } from './config.ts';

/** In milliseconds: less is not worth a word. */
const CLOCK_BEHIND_MS = 60_000;
/** Those who waited are told before the process ends. */
const FATAL_DELAY_MS = 100;
/**
 * EX_IOERR's neighbour for supervisors: a restart is the cure. Source: reliability.md R3, rule 3.
 */
const FATAL_EXIT_CODE = 70;

export type FirstStart = {
  projectId: string;
  /** Shown once: only its hash is stored. */
  apiKey: string;
  /** The operator chose it. */
  isPreset: boolean;
};

export type Core = AsyncDisposable & {
  /** In this process. */
  clients: Clients;
  handlers: AllHandlers;
  /** Of the gRPC door, as grpc-js spells it. */
  address: string;
  /** Only when this start made the first key. */
  firstStart?: FirstStart;
  close(): Promise<void>;
};

export type CoreOptions = {
  /** Instead of the machine's clocks. */
  now?: () => number;
  /** Instead of ending the process. */
  onFatal?: (error: Error) => void;
  metrics?: Metrics;
  /** Smaller figures, for tests. */
  disk?: DiskRule;
};

/** Starts core on its data directory. Throws ConfigError when the directory cannot be used. */
export async function startCore(
  config: CoreConfig,
  log: Log,
  options: CoreOptions = {},
): Promise<Core> {
  const { onFatal = (error) => endProcess(error, log) } = options;
  const { dataDir, durability, crashAt, leaseMs, sweepMs, queueMax } = config;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const keyFile = (name: string) => join(dataDir, 'keys', name);

  await using opened = new AsyncDisposableStack();
  const store = await openStore({ dir: dataDir, durability, crashAt, onFatal });
  opened.defer(() => store.close());
  const now = options.now ?? (await openClock(store, log));
  await store.recoverWork({ at: now(), leaseMs });
  const sealer = await openSecrets(store, keyFile('master.key'));
  const tokens = openTokens(keyFile);
  const files = await openBlobs(dataDir, { store, log, now, opened });
  const keys = opened.use(openKeyPool({ store, sealer, log, now }));
  opened.use(await startHeartbeat({ store, log, now }));
  opened.use(startSweep({ store, log, now, leaseMs, sweepMs }));
  opened.use(startCleaning(config, { store, files, log, now }));
  const checks = opened.use(openChecks());
  const watch = await openWatch(config, { store, log, now, opened }, options);
  const closing = new AbortController();
  const handlers = allHandlers({
    ...{ store, files, sealer, keys, checks, log, now, leaseMs, queueMax, ...watch },
    ...authenticator({ store, tokens, now }),
    webhookAllow: cidrList(config.webhookAllowCidrs),
    ...{ wall: options.now ?? Date.now, webhookRule: config.webhookRule },
    ...{ recordingDays: config.recordingDays, extensionsMax: config.extensionsMax },
    ...{ webhookRatePerS: config.webhookRatePerS, concurrency: config.concurrency, dataDir },
    closing: closing.signal,
  });
  const onError: OnError = (error, rpc) => log.error({ err: error.cause ?? error, rpc }, 'failed');
  const server = await listen(join(dataDir, 'core.sock'), handlers, onError);
  opened.defer(() => server.close());
  opened.defer(() => closing.abort());
  // Last: the key that a first start makes is shown only by a start that succeeds.
  const firstStart = await ensureProject(store, config, now());

  const parts = opened.move();
  const close = () => parts.disposeAsync();
  return {
    clients: localClients(handlers, { onError }),
    handlers,
    address: server.address,
    ...(firstStart && { firstStart }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function openBlobs(
  dataDir: string,
  { opened, ...parts }: Pick<Parts, 'store' | 'log' | 'now'> & { opened: AsyncDisposableStack },
) {
  const folder = join(dataDir, 'blobs');
  const files = await openBlobFiles(folder);
  opened.use(await startBlobSweep({ ...parts, files, folder }));
  return files;
}

/** What core sees of itself. */
async function openWatch(
  { dataDir, leaseMs }: CoreConfig,
  parts: Pick<Parts, 'store' | 'log' | 'now'> & { opened: AsyncDisposableStack },
  { metrics = NO_METRICS, disk: rule = DISK_RULE }: CoreOptions,
) {
  const { store, log, now, opened } = parts;
  const disk = opened.use(openDisk({ dir: dataDir, log, rule }));
  const readiness = openReadiness({ now, leaseMs });
  if (metrics !== NO_METRICS) await watchCore(metrics, { store, disk, readiness, now });
  return { disk, readiness, metrics };
}

async function openClock(store: Store, log: Log): Promise<() => number> {
  const written = await store.lastTime();
  const behindMs = written - Date.now();
  if (behindMs > CLOCK_BEHIND_MS) {
    log.warn({ behindMs }, "this machine's clock is behind what was written; going on from there");
  }
  return schedulerClock(written);
}

/**
 * The default project, and its first key when there is none. A preset key is always one of its
 * keys.
 */
async function ensureProject(
  store: Store,
  { concurrency, apiKey: preset }: CoreConfig,
  at: number,
): Promise<FirstStart | undefined> {
  const { id: projectId } = await store.ensureProject({
    ...{ id: newId(), name: 'default', defaultTimeout: DEFAULT_TIMEOUT, concurrency },
    ...{ createdAt: at, updatedAt: at },
  });
  const isFirst = !(await store.hasApiKeys(projectId));
  if (preset !== undefined) {
    const publicId = newPublicId(); // of the first time; one that is there stays as it is
    await store.addApiKey({ hash: hashOf(preset), projectId, publicId, name: 'preset', at });
    return isFirst ? { projectId, apiKey: preset, isPreset: true } : undefined;
  }
  if (!isFirst) return undefined;
  const { key, publicId } = newApiKey();
  await store.addApiKey({ hash: hashOf(key), projectId, publicId, name: 'first', at });
  return { projectId, apiKey: key, isPreset: false };
}

function openTokens(keyFile: (name: string) => string): Tokens {
  return {
    runner: tokenFile(keyFile('runner.token')),
    gateway: tokenFile(keyFile('gateway.token')),
    operator: tokenFile(keyFile('operator.token')),
  };
}

async function openSecrets(store: Store, path: string): Promise<Sealer> {
  const known = (await store.masterKeyCheck()) ?? null;
  const { sealer, check } = openSealer(path, known);
  if (known === null) await store.setMasterKeyCheck(check);
  return sealer;
}

function endProcess(error: Error, log: Log): void {
  log.fatal({ err: error }, 'the store failed; ending');
  setTimeout(() => process.exit(FATAL_EXIT_CODE), FATAL_DELAY_MS);
}
