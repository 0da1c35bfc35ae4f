/**
 * `tabern runner`: runs handlers, builds and Chrome, and leases that work from core.
 *
 * prepared (under `tabern serve`: modules are loaded, until the parent process sends `start`) ->
 * starting (sweep after dead runners, jail, Chrome, hosts, register) -> leasing -> draining (leases
 * no more work; TABERN_DRAIN_S for running work) -> ending (sessions end; 20 s for other work) ->
 * ended: no process and no directory is left. A closed IPC channel means that `tabern serve` has
 * ended: no time for running work. Exit code 78: a defect of the machine
 * that a restart does not fix; one line on stderr names it.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { SOCKET_PATH_MAX_BYTES } from '../proto/common/limits.ts';
import { type Log, openLog } from '../proto/common/log.ts';
import type { Metrics } from '../proto/common/metrics.ts';
import { retry } from '../proto/common/retry.ts';
import { steadyClock } from '../proto/common/steady-clock.ts';
import { endTracing, startTracing } from '../proto/common/tracing.ts';
import { openDrainSocket } from '../proto/drain/socket.ts';
import type { RegisterRunnerRequest, RunnerFacts } from '../proto/gen/tabern/v1/runners.pb.ts';
import { coreProblem } from '../proto/rpc/core-problem.ts';
import { Channel } from '../proto/rpc/remote.ts';
import { type Clients, remoteClients } from '../proto/rpc/services.ts';
import { ignoreHangup } from '../proto/tls/reload.ts';
import { ChromeNotFound } from './browser/find.ts';
import { openInstalled } from './builds/install/cache.ts';
import { runBuild } from './builds/run-build.ts';
import { onAbort } from './common/abort.ts';
import { isTransient } from './common/core-calls.ts';
import { removeTree } from './common/remove.ts';
import type { RunnerContext } from './common/runner-context.ts';
import { VERSION } from './common/version.ts';
import { type Config, environment, readConfig } from './config.ts';
import { openBundles } from './functions/bundle-cache.ts';
import { runInvocation } from './functions/run-invocation.ts';
import { closeInherited } from './jail/inherited-fds.ts';
import { JailError } from './jail/jail.ts';
import { openLeaseThread } from './leases/lease-worker.ts';
import { openLeases } from './leases/leases.ts';
import { type LoopOptions, workLoop } from './leases/work-loop.ts';
import { type Machine, OperatorError, openMachine } from './machine/machine.ts';
import { runnerMetrics } from './machine/metrics.ts';
import { openRunnerEnd, type RunnerEnd } from './machine/runner-end.ts';
import { runnerId } from './machine/runner-id.ts';
import { untilStarted } from './machine/runner-start.ts';
import { makeRunDir, sweepRuns } from './machine/stale-runs.ts';
import { settingsDeps } from './sessions/browser-settings.ts';
import { openExtensions } from './sessions/extensions.ts';
import { type Handoffs, openHandoffs } from './sessions/handoffs.ts';
import { CONNECT_MS, IDLE_MS, RESUME_MS } from './sessions/lifetime.ts';
import { openLogSpace } from './sessions/log/spool.ts';
import { runSession } from './sessions/run-session.ts';
import { followNotifications } from './sessions/server/notifications.ts';
import { openSessionServer, type SessionServer } from './sessions/server/session-server.ts';
import { receiveHandedOffSockets } from './sessions/server/socket-handoff.ts';

/** EX_CONFIG: a restart does not help. */
const OPERATOR_EXIT_CODE = 78;
/** EX_TEMPFAIL: `tabern serve` restarts it, as the newer instance. */
const SUPERSEDED_EXIT_CODE = 75;
const REGISTER_PAUSE_MS = 500;

type Core = Pick<RunnerContext, 'call'> & { clients: Clients };
type Started = {
  config: Config;
  log: Log;
  end: RunnerEnd;
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
  const config = readConfig(await untilStarted(environment()));
  const log = openLog({ role: 'runner', level: config.logLevel });
  const { closed, left } = closeInherited();
  if (closed.length > 0) log.debug({ fds: closed }, 'closed inherited file descriptors');
  if (left.length > 0) log.warn({ fds: left }, 'file descriptors are inherited by child processes');
  const end = openRunnerEnd(config.drainS, log);
  try {
    await runRunner(config, log, end);
  } catch (error) {
    if (!isForOperator(error)) throw error;
    process.stderr.write(`tabern runner: ${error.message}\n`);
    const isSuperseded = error instanceof SupersededError;
    process.exit(isSuperseded ? SUPERSEDED_EXIT_CODE : OPERATOR_EXIT_CODE);
  }
  await endTracing();
  process.exit(0); // an idle connection or a library's handle must not keep the process alive
}

async function runRunner(config: Config, log: Log, end: RunnerEnd): Promise<void> {
  await using closing = new AsyncDisposableStack();
  // under `tabern serve` the parent process has it, and closes it last
  if (process.send === undefined) closing.use(await openDrainSocket(config.dataDir, { end }));
  const runRoot = join(config.dataDir, 'run');
  const swept = await sweepRuns(runRoot);
  if (swept.length > 0) log.info({ runs: swept.length }, 'cleaned up after dead runners');
  const runDir = await makeRunDir(runRoot);
  closing.defer(() => removeTree(runDir));
  checkPathLength(runDir);

  if (config.coreTls) ignoreHangup(log);
  const channel = closing.use(new Channel(config.core, config.coreTls));
  const core: Core = {
    clients: remoteClients(channel),
    call: { metadata: { authorization: `Bearer ${config.token}` } },
  };
  const metrics = await runnerMetrics(config.metricsListen, { log, end, closing });
  const machine = await openMachine({ config, log, metrics, runDir, closing });
  await lease({ config, log, end, core, metrics, machine });
}

/** Registers and works until the runner ends. */
async function lease({ config, log, end, core, metrics, machine }: Started): Promise<void> {
  const caches = await openCaches(config, core, log);
  const identity = { runnerId: runnerId(config, log), instanceId: randomUUID() };
  const where = config.listen ?? join(machine.runDir, 'http.sock');
  await using server = await openSessionServer({ where, log });
  receiveHandedOffSockets(server, identity.runnerId);
  const facts = factsOf(config, machine);
  const registered = { ...identity, address: server.address, facts, browser: machine.browser() };
  const leaseMs = await register(core, registered, { config, log, end });
  if (leaseMs === undefined) return;
  /** `failed` aborts when no work can continue; the reason is the error. */
  const [closed, failed] = [new AbortController(), new AbortController()];
  const onSuperseded = (): void => failed.abort(new SupersededError());
  const runner: RunnerContext = {
    identity,
    ...core,
    runDir: machine.runDir,
    log,
    now: steadyClock(),
    draining: AbortSignal.any([end.draining, failed.signal]),
    ending: AbortSignal.any([end.ending, failed.signal]),
    stopped: AbortSignal.any([end.stopped, failed.signal]),
  };
  await using leases = openLeases({
    log,
    ...core,
    runner: identity,
    onSuperseded,
    openThread: (listener) => openLeaseThread({ config, runner: identity, leaseMs }, listener),
    leaseMs,
    isBrowserFailing: () => machine.browserFailure() !== undefined,
    browser: machine.browser,
    facts,
    onFailed: (error) => failed.abort(error),
    stopped: runner.stopped,
  });
  using _draining = onAbort(runner.draining, () => {
    leases.drain();
    machine.retire();
  });
  const handoffs = openHandoffs(core.clients);
  const kinds = workKinds({ config, metrics, machine, caches, runner, server, handoffs });
  const { jail, cgroups } = machine;
  log.info({ ...identity, sandbox: jail.level, cgroups }, 'runner is ready');
  end.leases(machine.browserFailure);
  const following = { ...core, log, runner: identity, leases, server, handoffs };
  const notifications = followNotifications({ ...following, signal: closed.signal });
  await Promise.all(kinds.map((kind) => workLoop({ ...kind, runner, leases, onSuperseded })));
  await machine.recordings.finish(runner.ending); // while the leases report
  closed.abort();
  await notifications;
  failed.signal.throwIfAborted();
}

/** What core shows of this runner. */
function factsOf(config: Config, { jail }: Machine): RunnerFacts {
  const { sessionsMax: sessions, invocationsMax: invocations, buildsMax: builds } = config;
  const { runnerLabels: labels = [] } = config;
  return { version: VERSION, sandbox: jail.level, sessions, invocations, builds, labels };
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
  const shared = { runner, sessionServer: server, handoffs, logSpace: openLogSpace(), ...browser };
  const invocationDeps = { ...shared, engine: engines.invocations.kind, bundles, hosts };
  const { sessionGraceMs: graceMs, sessionReturnMs: returnMs } = config;
  const own = { connectMs: CONNECT_MS, idleMs: IDLE_MS, resumeMs: RESUME_MS };
  const times = { ...own, graceMs, returnMs };
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
  runner: RegisterRunnerRequest,
  { config, log, end }: { config: Config; log: Log; end: RunnerEnd },
): Promise<number | undefined> {
  const link = { ...config, tokenSetting: 'TABERN_RUNNER_TOKEN' };
  const { draining: signal } = end;
  if (signal.aborted) return undefined;
  try {
    const { leaseMs } = await retry(() => clients.runners.registerRunner(runner, call), {
      firstMs: REGISTER_PAUSE_MS,
      maxMs: REGISTER_PAUSE_MS,
      signal,
      isRetryable: isTransient,
      onRetry(error) {
        const problem = coreProblem(error, link);
        log.warn({ problem, error: String(error) }, 'registering with core failed');
      },
    });
    return leaseMs;
  } catch (error) {
    if (isTransient(error)) return undefined;
    const problem = coreProblem(error, link);
    throw problem === undefined ? error : new OperatorError(problem);
  }
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
