/**
 * `tabern runner`: runs handlers, builds and Chrome, and leases that work from core.
 *
 * starting (sweep after dead runners, jail, Chrome, hosts, register) -> leasing -> draining (leases
 * no more work; 20 s for running work) -> ended: no process and no directory is left. A closed IPC
 * channel means that `tabern serve` has ended: no draining. Exit code 78: a defect of the machine
 * that a restart does not fix; one line on stderr names it.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SOCKET_PATH_MAX_BYTES } from '../proto/common/limits.ts';
import { type Log, openLog } from '../proto/common/log.ts';
import type { Metrics } from '../proto/common/metrics.ts';
import { retry } from '../proto/common/retry.ts';
import { steadyClock } from '../proto/common/steady-clock.ts';
import { endTracing, startTracing } from '../proto/common/tracing.ts';
import type { RunnerFacts } from '../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../proto/rpc/errors.ts';
import { Channel } from '../proto/rpc/remote.ts';
import { type Clients, remoteClients } from '../proto/rpc/services.ts';
import { ChromeNotFound } from './browser/find.ts';
import { openInstalled } from './builds/install/cache.ts';
import { runBuild } from './builds/run-build.ts';
import { isTransient } from './common/core-calls.ts';
import { removeTree } from './common/remove.ts';
import type { RunnerContext } from './common/runner-context.ts';
import { type Config, readConfig } from './config.ts';
import { openBundles } from './functions/bundle-cache.ts';
import { runInvocation } from './functions/run-invocation.ts';
import { closeInherited } from './jail/inherited-fds.ts';
import { JailError } from './jail/jail.ts';
import { openLeaseThread } from './leases/lease-worker.ts';
import { openLeases } from './leases/leases.ts';
import { type LoopOptions, workLoop } from './leases/work-loop.ts';
import { type Machine, OperatorError, openMachine } from './machine/machine.ts';
import { runnerMetrics } from './machine/metrics.ts';
import { runnerId } from './machine/runner-id.ts';
import { makeRunDir, sweepRuns } from './machine/stale-runs.ts';
import { settingsDeps } from './sessions/browser-settings.ts';
import { openExtensions } from './sessions/extensions.ts';
import { type Handoffs, openHandoffs } from './sessions/handoffs.ts';
import { CONNECT_MS, IDLE_MS } from './sessions/lifetime.ts';
import { runSession } from './sessions/run-session.ts';
import { followNotifications } from './sessions/server/notifications.ts';
import { openSessionServer, type SessionServer } from './sessions/server/session-server.ts';
import { receiveHandedOffSockets } from './sessions/server/socket-handoff.ts';

/** EX_CONFIG: a restart does not help. */
const OPERATOR_EXIT_CODE = 78;
/** EX_TEMPFAIL: `tabern serve` restarts it, as the newer instance. */
const SUPERSEDED_EXIT_CODE = 75;
/** Ours: below the 25 s after which `tabern serve` kills it. */
const DRAIN_MS = 20_000;
const REGISTER_PAUSE_MS = 500;
/** Core refused the runner's token. */
const REFUSED: readonly string[] = ['API_KEY_MISSING', 'API_KEY_INVALID', 'TOKEN_REQUIRED'];

/** Of this release. */
const { version: VERSION } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { version: string };

type Ends = Pick<RunnerContext, 'ending' | 'stopped'>;
type Core = Pick<RunnerContext, 'call'> & { clients: Clients };
type Started = {
  config: Config;
  log: Log;
  ends: Ends;
  core: Core;
  metrics: Metrics;
  machine: Machine;
};

/** Another process registered as this runner. */
class SupersededError extends OperatorError {
  constructor() {
    super('another runner on this data directory has registered: this one has ended its work');
  }
}

/** Runs until a signal ends it; then ends the process. */
export async function runnerMain(): Promise<void> {
  await startTracing();
  const config = readConfig();
  const log = openLog({ role: 'runner', level: config.logLevel });
  const { closed, left } = closeInherited();
  if (closed.length > 0) log.debug({ fds: closed }, 'closed inherited file descriptors');
  if (left.length > 0) log.warn({ fds: left }, 'file descriptors are inherited by child processes');
  const ends = listenForEnd(log);
  try {
    await runRunner(config, log, ends);
  } catch (error) {
    if (!isForOperator(error)) throw error;
    process.stderr.write(`tabern runner: ${error.message}\n`);
    const isSuperseded = error instanceof SupersededError;
    process.exit(isSuperseded ? SUPERSEDED_EXIT_CODE : OPERATOR_EXIT_CODE);
  }
  await endTracing();
  process.exit(0); // an idle connection or a library's handle must not keep the process alive
}

async function runRunner(config: Config, log: Log, ends: Ends): Promise<void> {
  await using closing = new AsyncDisposableStack();
  const runRoot = join(config.dataDir, 'run');
  const swept = await sweepRuns(runRoot);
  if (swept.length > 0) log.info({ runs: swept.length }, 'cleaned up after dead runners');
  const runDir = await makeRunDir(runRoot);
  closing.defer(() => removeTree(runDir));
  checkPathLength(runDir);

  const channel = closing.use(new Channel(config.core));
  const core: Core = {
    clients: remoteClients(channel),
    call: { metadata: { authorization: `Bearer ${config.token}` } },
  };
  const metrics = await runnerMetrics(config.metricsListen, log, closing);
  const machine = await openMachine({ config, log, metrics, runDir, closing });
  await lease({ config, log, ends, core, metrics, machine });
}

/** Registers and works until the runner ends. */
async function lease({ config, log, ends, core, metrics, machine }: Started): Promise<void> {
  const caches = await openCaches(config, core, log);
  const identity = { runnerId: runnerId(config.dataDir, log), instanceId: randomUUID() };
  const where = config.listen ?? join(machine.runDir, 'http.sock');
  await using server = await openSessionServer({ where, log });
  receiveHandedOffSockets(server);
  const leaseMs = await register(core, { ...identity, address: server.address }, { log, ends });
  if (leaseMs === undefined) return;
  const closed = new AbortController();
  /** Aborts when no work can continue; the reason is the error. */
  const failed = new AbortController();
  const onSuperseded = (): void => failed.abort(new SupersededError());
  const runner: RunnerContext = {
    identity,
    clients: core.clients,
    call: core.call,
    runDir: machine.runDir,
    log,
    now: steadyClock(),
    ending: AbortSignal.any([ends.ending, failed.signal]),
    stopped: AbortSignal.any([ends.stopped, failed.signal]),
  };
  await using leases = openLeases({
    log,
    onSuperseded,
    openThread: (listener) => openLeaseThread({ config, runner: identity, leaseMs }, listener),
    isBrowserFailing: machine.isBrowserFailing,
    browser: machine.browser,
    facts: factsOf(config, machine),
    onFailed: (error) => failed.abort(error),
    stopped: runner.stopped,
  });
  const handoffs = openHandoffs(core.clients);
  const kinds = workKinds({ config, metrics, machine, caches, runner, server, handoffs });
  const { jail, cgroups } = machine;
  log.info({ ...identity, sandbox: jail.level, cgroups }, 'runner is ready');
  const { clients, call } = core;
  const followers = { leases, server, handoffs };
  const following = { clients, call, log, runner: identity, signal: closed.signal };
  const notifications = followNotifications({ ...following, ...followers });
  await Promise.all(kinds.map((kind) => workLoop({ ...kind, runner, leases, onSuperseded })));
  closed.abort();
  await notifications;
  failed.signal.throwIfAborted();
}

/** What core shows of this runner. */
function factsOf(config: Config, { jail, chromes, chromeVersion: chrome }: Machine) {
  const { sessionsMax: sessions, invocationsMax: invocations, buildsMax: builds } = config;
  const same = { version: VERSION, chrome, sandbox: jail.level, sessions, invocations, builds };
  return (): RunnerFacts => {
    const { taken, up } = chromes.counts();
    return { ...same, spares: Math.max(0, up - taken) };
  };
}

async function openCaches({ dataDir }: Config, core: Core, log: Log) {
  const dir = join(dataDir, 'cache');
  return {
    bundles: await openBundles({ ...core, dir: join(dir, 'bundles') }),
    extensions: await openExtensions({ ...core, dir: join(dir, 'extensions') }),
    installed: await openInstalled({ dir: join(dir, 'installs'), log }),
  };
}

type WorkKind = Pick<LoopOptions, 'kind' | 'max' | 'announce' | 'run'>;

/** The options of each kind's work loop. */
function workKinds(options: {
  config: Config;
  metrics: Metrics;
  machine: Machine;
  caches: Awaited<ReturnType<typeof openCaches>>;
  runner: RunnerContext;
  server: SessionServer;
  handoffs: Handoffs;
}): WorkKind[] {
  const { config, metrics, machine, caches, runner, server, handoffs } = options;
  const { chromes, engines, hosts, jail, recordings } = machine;
  const { bundles, extensions, installed } = caches;
  const settings = settingsDeps(config);
  const browser = { chromes, recordings, extensions, settings, metrics };
  const shared = { runner, sessionServer: server, handoffs, ...browser };
  const invocationDeps = { ...shared, engine: engines.invocations.kind, bundles, hosts };
  const { sessionGraceMs: graceMs, sessionReturnMs: returnMs } = config;
  const times = { connectMs: CONNECT_MS, idleMs: IDLE_MS, graceMs, returnMs };
  const sessionDeps = { ...shared, engine: engines.sessions.kind, times };
  const buildDeps = { runner, hosts, jail, installed, env: config.env };
  return [
    {
      kind: 'INVOCATION',
      max: config.invocationsMax,
      // clients may connect before Chrome has started, because core reports RUNNING early
      announce: ({ item }) =>
        item?.$case === 'invocation' ? server.reserve(item.value.signingKey) : undefined,
      async run({ item }, lease) {
        if (item?.$case === 'invocation') await runInvocation(item.value, lease, invocationDeps);
      },
    },
    {
      kind: 'SESSION',
      max: config.sessionsMax,
      async run({ item }, lease) {
        if (item?.$case === 'session') await runSession(item.value, lease, sessionDeps);
      },
    },
    {
      kind: 'BUILD',
      max: config.buildsMax,
      async run({ item }, lease) {
        if (item?.$case === 'build') await runBuild(item.value, lease, buildDeps);
      },
    },
  ];
}

/** Registers the runner. Returns the lease time; undefined when the runner was ended first. */
async function register(
  { clients, call }: Core,
  runner: { runnerId: string; instanceId: string; address: string },
  { log, ends }: { log: Log; ends: Ends },
): Promise<number | undefined> {
  const { ending: signal } = ends;
  if (signal.aborted) return undefined;
  try {
    const { leaseMs } = await retry(() => clients.runners.registerRunner(runner, call), {
      firstMs: REGISTER_PAUSE_MS,
      maxMs: REGISTER_PAUSE_MS,
      signal,
      isRetryable: isTransient,
      onRetry: (error) => log.warn({ error: String(error) }, 'registering with core failed'),
    });
    return leaseMs;
  } catch (error) {
    if (error instanceof Fault && REFUSED.includes(error.reason)) {
      throw new OperatorError('core refused the runner token: set TABERN_RUNNER_TOKEN to core’s');
    }
    if (!isTransient(error)) throw error;
    return undefined;
  }
}

function listenForEnd(log: Log): Ends {
  const ending = new AbortController();
  const stopped = new AbortController();
  const drain = (signal: NodeJS.Signals): void => {
    if (ending.signal.aborted) return;
    log.info({ signal }, 'draining: no more work is leased');
    ending.abort();
    setTimeout(() => stopped.abort(), DRAIN_MS).unref();
  };
  process.on('SIGTERM', drain);
  process.on('SIGINT', drain);
  process.on('disconnect', () => {
    log.warn('the parent process has ended: ending all work');
    ending.abort();
    stopped.abort();
  });
  return { ending: ending.signal, stopped: stopped.signal };
}

function checkPathLength(runDir: string): void {
  const longest = join(runDir, 'h999999', 'egress.sock');
  if (Buffer.byteLength(longest) <= SOCKET_PATH_MAX_BYTES) return;
  throw new OperatorError(
    `the data directory's path is too long for sockets in it: ${Buffer.byteLength(longest)} of ` +
      `${SOCKET_PATH_MAX_BYTES} bytes. Set TABERN_DATA to a shorter one`,
  );
}

function isForOperator(error: unknown): error is Error {
  return (
    error instanceof OperatorError || error instanceof JailError || error instanceof ChromeNotFound
  );
}
