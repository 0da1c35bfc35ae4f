/**
 * Runs functions for `tabern dev` with the runner's own jail, Chrome and function hosts, one of
 * each, in a directory of the user's cache. A function has the same environment as in the service.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { chmod, mkdir, realpath, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Env, text } from '../../../proto/common/env.ts';
import { type Log, openLog } from '../../../proto/common/log.ts';
import { NO_METRICS } from '../../../proto/common/metrics.ts';
import { steadyClock } from '../../../proto/common/steady-clock.ts';
import { ChromeNotFound } from '../../browser/find.ts';
import { onAbort } from '../../common/abort.ts';
import { recordSteps, step } from '../../common/steps.ts';
import { type Config, NO_TOKEN, readConfig } from '../../config.ts';
import type { Invoke, InvokeOutcome } from '../../functions/hosts.ts';
import { JailError } from '../../jail/jail.ts';
import { type Machine, OperatorError, openMachine } from '../../machine/machine.ts';
import { makeRunDir, sweepRuns } from '../../machine/stale-runs.ts';
import {
  type SessionParams,
  sessionSettings,
  settingsDeps,
} from '../../sessions/browser-settings.ts';
import { openSession } from '../../sessions/session.ts';
import { CliError } from '../config.ts';
import type { DevStep } from './runs.ts';

/** WebSocket close code. */
const NORMAL = 1000;
/** The region that local servers report. Source: proto/spec/functions.md 9. */
const REGION = 'local';
/** Sizes for one developer. */
const SIZES = {
  TABERN_CHROME_SPARES: '1',
  TABERN_SESSION_SPARES: '0',
  TABERN_BURST_SPARES_MAX: '0',
  TABERN_HOST_SPARES: '1',
  TABERN_INVOCATIONS_MAX: '1',
  TABERN_SESSIONS_MAX: '1',
  ...NO_TOKEN,
};
/** Errors that the user can fix. */
const FIXABLE = [OperatorError, JailError, ChromeNotFound];

/** One run of a function. */
type DevRun = Pick<Invoke, 'bundle' | 'functionName' | 'onLines' | 'signal'> & {
  params: object;
  session: SessionParams;
  /** Called for each setting of the session that is not supported here. */
  warn(message: string): void;
};

export type DevMachine = AsyncDisposable & {
  hosts: Machine['hosts'];
  log: Log;
  /** In the user's cache, which may be inside the project. */
  dataDir: string;
  /** Of this process; removed when the machine is closed. */
  runDir: string;
  /** The outcome, and the steps that led to it. */
  run(wanted: DevRun): Promise<{ outcome: InvokeOutcome; steps: DevStep[] }>;
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
  const machine = await openMachine({ config, log, metrics: NO_METRICS, runDir, closing }).catch(
    (error: Error) => {
      throw FIXABLE.some((type) => error instanceof type) ? new CliError(error.message) : error;
    },
  );
  const opened = closing.move();
  return {
    hosts: machine.hosts,
    log,
    dataDir: await realpath(dataDir),
    runDir,
    run: runner(machine, config, log),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function runner({ chromes, engines, hosts }: Machine, config: Config, log: Log) {
  const deps = settingsDeps(config);
  const engine = engines.invocations.kind;
  const invoke = async (given: DevRun): Promise<InvokeOutcome> => {
    const { session: wanted, params, warn, ...run } = given;
    const { wanted: chrome, open } = sessionSettings(wanted, engine, { ...deps, warn });
    const options = { chromes, log, now: steadyClock(), components: [open] };
    const session = await openSession(
      { ...options, chromeOptions: async () => chrome },
      run.signal,
    );
    // As in the service: the browser ends with the time limit, before the handler returns.
    using _ending = onAbort(run.signal, () => {
      const closed = session.close(NORMAL, 'the invocation was ended', false);
      closed.then(session.discard).catch(() => undefined); // reported by the close below
    });
    try {
      const request = {
        ...run,
        invocationId: randomUUID(),
        projectId: 'dev',
        paramsJson: JSON.stringify(params),
        secrets: [],
        sessionId: randomUUID(),
        signingKey: randomBytes(32).toString('base64url'),
        region: REGION,
        relay: session.relay,
      };
      return await step('handler', () => hosts.invoke(request));
    } finally {
      await session.close(NORMAL, 'the invocation has ended', false).finally(session.discard);
    }
  };
  return (given: DevRun) =>
    recordSteps(async (taken) => {
      const outcome = await invoke(given);
      return { outcome, steps: taken() };
    });
}
