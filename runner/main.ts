/**
 * `tabern runner`: runs handlers, builds and Chrome, and leases that work from core.
 *
 * starting (sweep after dead runners, jail, Chrome, hosts, register) -> leasing -> draining (leases
 * no more; 20 s for what
 * runs) -> ended: no process and no directory is left. A closed IPC channel means that `tabern
 * serve` is gone: no draining. Code 78: the machine lacks something that a restart does not bring;
 * one line says what.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Log, openLog } from '../proto/common/log.ts';
import { steadyClock } from '../proto/common/steady-clock.ts';
import { endTracing, startTracing } from '../proto/common/tracing.ts';
import type { Work } from '../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../proto/rpc/errors.ts';
import type { CallOptions } from '../proto/rpc/local.ts';
import { Channel } from '../proto/rpc/remote.ts';
import { type Clients, remoteClients } from '../proto/rpc/services.ts';
import { ChromeNotFound } from './browser/find.ts';
import { openInstalled } from './builds/install/cache.ts';
import { runBuild } from './builds/run-build.ts';
import { removeTree } from './common/remove.ts';
import { type Config, readConfig } from './config.ts';
import { openBundles } from './functions/bundle-cache.ts';
import { runInvocation } from './functions/run-invocation.ts';
import { closeInherited } from './jail/inherited-fds.ts';
import { JailError } from './jail/jail.ts';
import { openLeaseThread } from './leases/lease-worker.ts';
import { openLeases } from './leases/leases.ts';
import { isPassing } from './leases/log-shipper.ts';
import { workLoop } from './leases/work-loop.ts';
import { type Machine, OperatorError, openMachine } from './machine/machine.ts';
import { runnerMetrics } from './machine/metrics.ts';
import { runnerId } from './machine/runner-id.ts';
import { makeRunDir, sweepRuns } from './machine/stale-runs.ts';
import { settingsDeps } from './sessions/browser-settings.ts';
import { openExtensions } from './sessions/extensions.ts';
import { CONNECT_MS, IDLE_MS } from './sessions/lifetime.ts';
import { runSession } from './sessions/run-session.ts';
import { followNotifications } from './sessions/server/notifications.ts';
import { openSessionServer } from './sessions/server/session-server.ts';
import { receiveHandedOffSockets } from './sessions/server/socket-handoff.ts';

/** EX_CONFIG: nothing that a restart mends. */
const OPERATOR_EXIT_CODE = 78;
/** EX_TEMPFAIL: `tabern serve` starts it again, and then it is the newer one. */
const SUPERSEDED_EXIT_CODE = 75;
/** Ours: below the 25 s after which `tabern serve` kills it. */
const DRAIN_MS = 20_000;
/** In bytes: the kernel's limit of a unix socket's path. */
const SOCKET_PATH_MAX_BYTES = 107;
const REGISTER_PAUSE_MS = 500;
/** Core refused the runner's token. */
const REFUSED: readonly string[] = ['API_KEY_MISSING', 'API_KEY_INVALID', 'TOKEN_REQUIRED'];

/** Ends: `asked` leases no more, `stopped` aborts what still runs. */
type Ends = { asked: AbortSignal; stopped: AbortSignal };
type Core = { clients: Clients; call: CallOptions };

/** Another process registered as this runner. */
class SupersededError extends OperatorError {
  constructor() {
    super('another runner on this data directory has registered: this one has ended its work');
  }
}

/** Runs until it is asked to end; then ends the process. */
export async function runnerMain(): Promise<void> {
  await startTracing();
  const config = readConfig();
  const log = openLog({ role: 'runner', level: config.logLevel });
  const { closed, left } = closeInherited();
  if (closed.length > 0) log.debug({ fds: closed }, 'closed what the runner was started with');
  if (left.length > 0) log.warn({ fds: left }, 'what runs here inherits descriptors of the runner');
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
  process.exit(0); // an idle connection or a handle of a library keeps nothing alive
}

async function runRunner(config: Config, log: Log, ends: Ends): Promise<void> {
  await using closing = new AsyncDisposableStack();
  const runRoot = join(config.dataDir, 'run');
  const gone = await sweepRuns(runRoot);
  if (gone.length > 0) log.info({ runs: gone.length }, 'cleaned up after runners that died');
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
  await lease({ config, log, ends, core, machine });
}

async function lease(options: {
  config: Config;
  log: Log;
  ends: Ends;
  core: Core;
  machine: Machine;
}): Promise<void> {
  const { config, log, ends, core, machine } = options;
  const { chromes, engines, hosts, jail, recordings, runDir } = machine;
  const cacheDir = join(config.dataDir, 'cache');
  const bundles = await openBundles({ ...core, dir: join(cacheDir, 'bundles') });
  const extensions = await openExtensions({ ...core, dir: join(cacheDir, 'extensions') });
  const installed = await openInstalled({ dir: join(cacheDir, 'installs'), log });
  const runner = { runnerId: runnerId(config.dataDir, log), instanceId: randomUUID() };
  await using server = await openSessionServer({
    where: config.listen ?? join(runDir, 'http.sock'),
    log,
  });
  receiveHandedOffSockets(server);
  const self = { ...runner, address: server.address };
  const leaseMs = await register(core, self, { log, ends });
  if (leaseMs === undefined) return;
  const over = new AbortController();
  /** No work can go on here; its reason says why. */
  const failed = new AbortController();
  const asked = AbortSignal.any([ends.asked, failed.signal]);
  const stopped = AbortSignal.any([ends.stopped, failed.signal]);
  const own = { ...core, runner, log, onSuperseded: () => failed.abort(new SupersededError()) };
  await using leases = openLeases({
    ...own,
    openThread: (listener) => openLeaseThread({ config, runner, leaseMs }, listener),
    isBrowserFailing: machine.isBrowserFailing,
    onFailed: (error) => failed.abort(error),
    stopped,
  });
  const { cgroups } = machine;
  log.info({ ...runner, sandbox: jail.level, cgroups }, 'runner is ready');

  const news = followNotifications({ ...own, leases, server, signal: over.signal });
  const shared = { ...own, leases, signal: asked };
  const times = { connectMs: CONNECT_MS, idleMs: IDLE_MS, graceMs: config.sessionGraceMs };
  const browsers = settingsDeps(config);
  const ofInvocations = { engine: engines.invocations.kind, bundles, hosts };
  const ofSessions = { engine: engines.sessions.kind, times, ending: asked };
  const shown = { recordings, extensions, browsers };
  const browsing = () => {
    return { ...core, ...shown, chromes, server, runDir, log, now: steadyClock(), stopped };
  };
  const build = { runDirectory: runDir, env: config.env };
  await Promise.all([
    workLoop({
      ...shared,
      kind: 'INVOCATION',
      max: config.invocationsMax,
      // core says RUNNING before there is a Chrome
      announce: ({ item }) =>
        item?.$case === 'invocation' ? server.reserve(item.value.signingKey) : undefined,
      async run({ leaseId, item }: Work, held) {
        if (item?.$case !== 'invocation') return;
        await runInvocation(item.value, leaseId, { ...browsing(), ...ofInvocations, ...held });
      },
    }),
    workLoop({
      ...shared,
      kind: 'SESSION',
      max: config.sessionsMax,
      async run({ leaseId, item }: Work, held) {
        if (item?.$case !== 'session') return;
        await runSession(item.value, leaseId, { ...browsing(), ...ofSessions, ...held });
      },
    }),
    workLoop({
      ...shared,
      kind: 'BUILD',
      max: config.buildsMax,
      async run({ leaseId, item }: Work, { lost, acknowledged, call }) {
        await acknowledged;
        if (item?.$case !== 'build' || lost.aborted) return;
        const signal = AbortSignal.any([lost, stopped]);
        const deps = { ...core, call, hosts, jail, installed, config: build, log, signal };
        await runBuild(item.value, leaseId, deps);
      },
    }),
  ]);
  over.abort();
  await news;
  failed.signal.throwIfAborted();
}

/** The lease's time; undefined when the end came first. */
async function register(
  { clients, call }: Core,
  runner: { runnerId: string; instanceId: string; address: string },
  { log, ends }: { log: Log; ends: Ends },
): Promise<number | undefined> {
  while (!ends.asked.aborted) {
    try {
      return (await clients.runners.registerRunner(runner, call)).leaseMs;
    } catch (error) {
      if (error instanceof Fault && REFUSED.includes(error.reason)) {
        throw new OperatorError('core refused the runner token: set TABERN_RUNNER_TOKEN to core’s');
      }
      if (!isPassing(error)) throw error;
      log.warn({ error: String(error) }, 'core cannot be reached yet');
      await sleep(REGISTER_PAUSE_MS);
    }
  }
  return undefined;
}

function listenForEnd(log: Log): Ends {
  const asked = new AbortController();
  const stopped = new AbortController();
  const drain = (signal: NodeJS.Signals): void => {
    if (asked.signal.aborted) return;
    log.info({ signal }, 'leasing no more');
    asked.abort();
    setTimeout(() => stopped.abort(), DRAIN_MS).unref();
  };
  process.on('SIGTERM', drain);
  process.on('SIGINT', drain);
  process.on('disconnect', () => {
    log.warn('the parent is gone: ending everything');
    asked.abort();
    stopped.abort();
  });
  return { asked: asked.signal, stopped: stopped.signal };
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
