/**
 * What `tabern dev` runs functions with: the runner's own jail, Chrome and function hosts, one of
 * each, on a directory of the user's cache. So a function meets here what it meets in the service.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { chmod, mkdir, realpath, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Env, text } from '../../proto/common/env.ts';
import { type Log, openLog } from '../../proto/common/log.ts';
import { NO_METRICS } from '../../proto/common/metrics.ts';
import { steadyClock } from '../../proto/common/steady-clock.ts';
import { ChromeNotFound } from '../browser/find.ts';
import { type Config, readConfig } from '../config.ts';
import type { Bundle } from '../functions/bundle-cache.ts';
import type { InvokeOutcome } from '../functions/hosts.ts';
import type { LogLine } from '../host/messages.ts';
import { JailError } from '../jail/jail.ts';
import { type Machine, OperatorError, openMachine } from '../machine/machine.ts';
import { makeRunDir, sweepRuns } from '../machine/stale-runs.ts';
import { type SessionParams, sessionSettings, settingsDeps } from '../sessions/browser-settings.ts';
import { openSession } from '../sessions/session.ts';
import { CliError } from './config.ts';

/** WebSocket close code. */
const NORMAL = 1000;
/** The region that local servers report. Source: proto/spec/functions.md 9. */
const REGION = 'local';
/** Not of a service's: it counts threads and spares for one developer. */
const SIZES = {
  TABERN_CHROME_SPARES: '1',
  TABERN_SESSION_SPARES: '0',
  TABERN_HOST_SPARES: '1',
  TABERN_INVOCATIONS_MAX: '1',
  TABERN_SESSIONS_MAX: '1',
  TABERN_RUNNER_TOKEN: 'none', // it calls no core
};

/** One run of a function. */
export type DevRun = {
  bundle: Bundle;
  functionName: string;
  params: object;
  session: SessionParams;
  onLines(lines: readonly LogLine[]): void;
  /** Of what its session's settings cannot have here. */
  warn(message: string): void;
  signal: AbortSignal;
};

export type DevMachine = AsyncDisposable & {
  hosts: Machine['hosts'];
  log: Log;
  /** Of the user's cache, which may lie in the project. */
  dataDir: string;
  /** Of this process; removed at its end. */
  runDir: string;
  run(wanted: DevRun): Promise<InvokeOutcome>;
};

/** Throws CliError with what the machine lacks. */
export async function openDevMachine(env: Env): Promise<DevMachine> {
  const dataDir = join(text(env, 'XDG_CACHE_HOME') ?? join(homedir(), '.cache'), 'tabern/dev');
  const config = readConfig({
    ...env,
    ...SIZES,
    TABERN_DATA: dataDir,
    TABERN_LOG_LEVEL: env['TABERN_LOG_LEVEL'] ?? 'error',
  });
  const log = openLog({ role: 'dev', level: config.logLevel });
  await mkdir(dataDir, { recursive: true });
  await chmod(dataDir, 0o700);
  const runRoot = join(dataDir, 'run');
  await sweepRuns(runRoot);
  const runDir = await makeRunDir(runRoot);
  await using closing = new AsyncDisposableStack();
  closing.defer(() => rm(runDir, { recursive: true, force: true, maxRetries: 5 }));
  const machine = await opened({ config, log, runDir, closing });
  const kept = closing.move();
  return {
    hosts: machine.hosts,
    log,
    dataDir: await realpath(dataDir),
    runDir,
    run: runner(machine, config, log),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

type Opening = { config: Config; log: Log; runDir: string; closing: AsyncDisposableStack };

async function opened(opening: Opening): Promise<Machine> {
  try {
    return await openMachine({ ...opening, metrics: NO_METRICS });
  } catch (error) {
    const isMendable =
      error instanceof OperatorError ||
      error instanceof JailError ||
      error instanceof ChromeNotFound;
    throw isMendable ? new CliError(error.message) : error;
  }
}

function runner({ chromes, engines, hosts }: Machine, config: Config, log: Log) {
  const deps = settingsDeps(config);
  const engine = engines.invocations.kind;
  return async ({ session: asked, params, warn, ...wanted }: DevRun): Promise<InvokeOutcome> => {
    const { signal } = wanted;
    const settings = sessionSettings(asked, engine, { ...deps, warn });
    const options = { chromes, log, now: steadyClock() };
    const session = await openSession(
      { ...options, chromeOptions: async () => settings.wanted, components: [settings.open] },
      signal,
    );
    // as in the service: a handler whose time is over drives nothing more
    const cut = (): void => {
      const closed = session.close(NORMAL, 'the invocation was ended', false);
      closed.then(session.discard).catch(() => undefined); // heard by who ends the session below
    };
    signal.addEventListener('abort', cut);
    try {
      return await hosts.invoke({
        ...wanted,
        invocationId: randomUUID(),
        projectId: 'dev',
        paramsJson: JSON.stringify(params),
        sessionId: randomUUID(),
        signingKey: randomBytes(32).toString('base64url'),
        region: REGION,
        relay: session.relay,
      });
    } finally {
      signal.removeEventListener('abort', cut);
      await session.close(NORMAL, 'the invocation has ended', false).finally(session.discard);
    }
  };
}
