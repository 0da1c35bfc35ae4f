/** Opens what a runner uses of its machine: a sandbox, Chromes, function hosts, the encoder. */
import { statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Log } from '../../proto/common/log.ts';
import type { Metrics } from '../../proto/common/metrics.ts';
import type { RunnerBrowser } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { type Engine, type Engines, findEngines } from '../browser/find.ts';
import { type Chrome, launchChrome } from '../browser/launch.ts';
import { type ChromePool, openChromePool, type TakeOptions } from '../browser/pool.ts';
import { UnsupportedSessionError } from '../common/unsupported-session.ts';
import { VERSION } from '../common/version.ts';
import type { Config } from '../config.ts';
import { hostEgress } from '../functions/host-sockets.ts';
import { type Hosts, openHosts } from '../functions/hosts.ts';
import { canRun, findRuntime, OWN_KIND, RuntimeNotFound } from '../functions/runtime.ts';
import { canNest } from '../jail/backends/bwrap.ts';
import { openGroups } from '../jail/cgroups/cgroups.ts';
import { openEgress } from '../jail/egress/egress-proxy.ts';
import type { Jail } from '../jail/jail.ts';
import { openJail } from '../jail/open.ts';
import { openEncoder } from '../sessions/recording/encoder.ts';
import { openRecordings, type Recordings } from '../sessions/recording/uploader.ts';
import { probeChrome } from './browser-self-test.ts';
import { bootId, openCacheDir } from './cache.ts';
import { type Launches, watchLaunches } from './launch-health.ts';
import { memoryLimit } from './memory-limit.ts';
import { watchPool } from './metrics.ts';
import { openSelfTestRecord, type SelfTestRecord } from './self-test-record.ts';
import { isAlive, sweepTemp } from './stale-runs.ts';

/** A problem that the operator must fix. The command prints its message. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError';
}

/** Opens private addresses to pages and handlers (proto/common/settings/table.ts). */
const ALLOW_SETTING = 'TABERN_BROWSER_ALLOW_CIDRS';

/** Of a Chrome with a blank page. Measured (gateway/web/docs/guide/sizing.md). */
const BLANK_CHROME_BYTES = 155 * 2 ** 20;
/** Ours: the part of the memory that the spares of a burst may take. */
const SPARES_PART = 0.25;

/** Chrome's jail sends its listening socket over a channel that only Node has. */
const NO_JAIL_UNDER_DENO =
  'a runner that runs under Deno can make no sandbox: set TABERN_SANDBOX=none at your own risk, ' +
  'or run the runner under Node with TABERN_ENGINE=deno, which jails Deno';

export type Machine = {
  jail: Jail;
  /** The cgroup controllers that limit jails, or the reason for none. */
  cgroups: string;
  engines: Engines;
  chromes: ChromePool;
  hosts: Hosts;
  recordings: Recordings;
  runDir: string;
  /** Ends spare Chromes and function hosts, and keeps none: the runner drains. */
  retire(): void;
  /** Why the newest start of Chrome failed; undefined when it worked. */
  browserFailure(): string | undefined;
  /** For core's overview; undefined before the first start. */
  browser(): RunnerBrowser | undefined;
};

/** Its resources are closed by `closing`. Throws OperatorError, JailError, ChromeNotFound. */
export async function openMachine(options: {
  config: Config;
  log: Log;
  metrics: Metrics;
  runDir: string;
  closing: AsyncDisposableStack;
}): Promise<Machine> {
  const { config, log, metrics, runDir, closing } = options;
  const { allow, dataDir } = config;
  if (OWN_KIND === 'deno' && config.sandbox !== 'none') throw new OperatorError(NO_JAIL_UNDER_DENO);
  const cacheDir = join(dataDir, 'cache');
  await sweepTemp();
  await openCacheDir(cacheDir, { log, boot: bootId() });
  const cgroups = await openGroups({ owner: basename(runDir), isAlive, log });
  const groups = 'why' in cgroups ? undefined : cgroups;
  const jail = await openJail({ sandbox: config.sandbox, log, tmpDir: runDir, groups });
  const runtime = await findRuntime(config.engine, config.env).catch((error: unknown) => {
    throw error instanceof RuntimeNotFound ? new OperatorError(error.message) : error;
  });
  if (!canRun(runtime, jail)) {
    throw new OperatorError(
      `${runtime.kind} cannot run in the ${jail.level} sandbox: install bubblewrap ` +
        '(apt install bubblewrap), or set TABERN_ENGINE=node',
    );
  }
  log.info({ engine: runtime.kind, version: runtime.version }, 'runtime of functions');
  const engines = await findEngines({
    cacheDir: join(cacheDir, 'chromium'),
    log,
    ...(config.chrome === undefined ? {} : { program: config.chrome }),
    shellOnly: !jail.hasUnixSockets,
  });
  const hasSandbox = await canNest(jail, log);
  const { browserMemoryBytes: memoryMaxBytes } = config;
  const common = { jail, hasSandbox, runDir, log, ...(memoryMaxBytes && { memoryMaxBytes }) };
  const launch = async (options: TakeOptions): Promise<Chrome> => {
    const { engine: kind, memoryFactor = 1, ...wanted } = options;
    const { invocations, all } = engines;
    const engine = kind === undefined ? invocations : all.find((one) => one.kind === kind);
    if (engine === undefined) {
      throw new UnsupportedSessionError(
        `the session needs ${kind}, which its runner does not have`,
      );
    }
    return await launchChrome({
      ...common,
      ...(memoryMaxBytes && {
        memoryMaxBytes: Math.min(memoryMaxBytes * memoryFactor, config.browserMemoryMaxBytes),
      }),
      engine,
      egress: openEgress({ allow, allowSetting: ALLOW_SETTING, log, isBrowser: true }),
      ...wanted,
    });
  };
  const record = await openSelfTestRecord(cacheDir, {
    program: engines.invocations.program,
    sandbox: jail.level,
    isNested: hasSandbox,
    version: VERSION,
  });
  const onFailure = (): void => void record.remove().catch(() => undefined);
  const launches = closing.use(watchLaunches({ launch, log, metrics, onFailure }));
  await probe(launches.launch, { record, log });
  const chromes = openChromePool({
    launch: launches.launch,
    spares: sparesOf(engines, config),
    sparesMax: config.burstSparesMax ?? sparesInMemory(),
    max: config.invocationsMax + config.sessionsMax,
    log,
  });
  closing.defer(() => chromes.close());
  watchPool(metrics, chromes);
  const hosts = openHosts({
    jail,
    runtime,
    isolation: config.isolation,
    runDir,
    spares: config.hostSpares,
    openEgress: hostEgress({ allow, allowSetting: ALLOW_SETTING, log }),
    log,
  });
  closing.use(hosts);
  const encoder = openEncoder({
    launch: (wanted) => {
      const shell = engines.all.find(({ kind }) => kind === 'headless-shell'); // the lighter one
      return launchChrome({ ...common, engine: shell ?? engines.invocations, ...wanted });
    },
    log,
  });
  const recordings = closing.use(openRecordings({ encoder, runDir, log }));
  return {
    jail,
    cgroups: 'why' in cgroups ? `none: ${cgroups.why}` : cgroups.controllers.join(', '),
    engines,
    chromes,
    hosts,
    recordings,
    runDir,
    retire() {
      chromes.retire();
      hosts.retire();
      recordings.retire();
    },
    browserFailure: () => launches.failure,
    browser: reporterOf({ launches, chromes, buildMs: buildMsOf(engines.sessions, cacheDir) }),
  };
}

function reporterOf(options: {
  launches: Launches;
  chromes: ChromePool;
  buildMs: number;
}): Machine['browser'] {
  const { launches, chromes, buildMs } = options;
  return () => {
    if (launches.newest === undefined) return undefined;
    const { product, at } = launches.newest;
    const { taken, up } = chromes.counts();
    const startedAgoMs = performance.now() - at;
    return { product, buildMs, spares: Math.max(0, up - taken), startedAgoMs };
  };
}

/** Packages keep the time of their build. That of the npm package was unpacked here: 0. */
function buildMsOf({ program }: Engine, cacheDir: string): number {
  return program.startsWith(cacheDir) ? 0 : statSync(program).mtimeMs;
}

/** The spares of invocations, then those of sessions; one entry when both use one engine. */
function sparesOf({ invocations, sessions }: Engines, config: Config) {
  const { chromeSpares, sessionSpares } = config;
  if (invocations === sessions) {
    return [{ engine: invocations.kind, count: chromeSpares + sessionSpares }];
  }
  return [
    { engine: invocations.kind, count: chromeSpares },
    { engine: sessions.kind, count: sessionSpares },
  ];
}

/** So many blank Chromes fit into the part of the memory that spares may take. */
function sparesInMemory(): number {
  return Math.floor((memoryLimit() * SPARES_PART) / BLANK_CHROME_BYTES);
}

async function probe(
  launch: (wanted: TakeOptions) => Promise<Chrome>,
  { record, log }: { record: SelfTestRecord; log: Log },
): Promise<void> {
  const passed = await record.passed();
  if (passed !== undefined) {
    log.info({ chrome: passed }, 'Chrome has worked since the boot');
    return;
  }
  try {
    const chrome = await launch({});
    try {
      const version = await probeChrome(chrome, log);
      log.info({ chrome: version }, 'Chrome works');
      // without it the next start tests again; a full disk is reported elsewhere
      await record.write(version).catch((err: Error) => {
        log.warn({ err }, 'recording the self-test of Chrome failed');
      });
    } finally {
      await chrome.close();
    }
  } catch (error) {
    throw new OperatorError(`Chrome does not work here: ${(error as Error).message}`);
  }
}
