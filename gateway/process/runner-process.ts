/**
 * The runner as a child process of `tabern serve`: untrusted code and Chrome never share a process
 * with state. It is restarted with a back-off unless it refuses to start. When this process ends,
 * the IPC channel closes, and the runner ends all its work.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Env } from '../../proto/common/env.ts';
import type { Log } from '../../proto/common/log.ts';
import type { Samples } from '../../proto/common/metrics.ts';
import { retry } from '../../proto/common/retry.ts';
import {
  type DrainAsked,
  type EndAsked,
  isMetricsTold,
  isSessionServerOpened,
  isSocketClosed,
  type MetricsAsked,
  PREPARED_BY,
  type SocketHandOff,
  type StartAsked,
} from '../../proto/common/runner-ipc.ts';
import { SETTINGS } from '../../proto/common/settings/table.ts';
import { isTracing } from '../../proto/common/tracing.ts';
import { EXIT } from './exit-codes.ts';
import { openHandedOff } from './handed-off.ts';
import { preloads } from './preloads.ts';

const COMMAND: readonly string[] = [fileURLToPath(new URL('../bin.ts', import.meta.url)), 'runner'];
/** In milliseconds: delay between restarts, doubling; reset after LIVED_MS. Ours. */
const BACKOFF_MIN_MS = 200;
const BACKOFF_MAX_MS = 10_000;
const LIVED_MS = 30_000;
/**
 * A runner that was told to end is killed after this. Ours: 5 s of the end's 30 are core's.
 */
const CLOSE_MAX_MS = 25_000;

/**
 * Variables that a runner needs, and those that its builds need to reach the operator's package
 * registry, which may require a proxy and a certificate authority.
 */
const PASSED = new Set([
  ...['PATH', 'HOME', 'LANG', 'TZ', 'TMPDIR', 'npm_execpath'],
  ...['npm_config_registry', 'npm_config_userconfig', 'npm_config_globalconfig'],
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'],
  ...['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'],
  'NODE_COMPILE_CACHE', // gateway/modules.js
]);
/** Secrets of other roles, and the settings file, which may hold them: it has been read. */
const SECRETS = SETTINGS.filter(({ isSecret, roles }) => isSecret && !roles.includes('runner'));
const KEPT = [
  ...['CONFIG', ...SECRETS.map(({ name }) => name)].flatMap((name) => [
    `TABERN_${name}`,
    `TABERN_${name}_FILE`,
  ]),
  'TABERN_TLS_KEY_FILE',
  'TABERN_CORE_TLS_KEY_FILE',
];
/** Exit codes that a restart cannot fix. */
const REFUSALS: readonly number[] = [EXIT.config, EXIT.operator];

export type RunnerChild = {
  /**
   * Hands a connection off to the runner, with the bytes to read first. Returns false when the
   * address is not that of its session server: the connection is unchanged.
   */
  handOver: HandOver;
  /** Settles when a runner works for the first time. */
  ready: Promise<undefined>;
  /** Resolves with the exit code of a runner that cannot work; its messages are on stderr. */
  refused: Promise<number>;
  /** Metrics of the runner; empty when it has none, or does not answer in time. */
  samples(): Promise<Samples>;
  /** Requests a drain, which `close` ends; settles when the runner has ended. */
  drain(): Promise<void>;
  /** Requests the end; kills the runner when it does not end. */
  close(): Promise<void>;
};

/** `readAhead` returns the bytes already read, when the connection is sent. */
export type HandOver = (address: string, socket: Socket, readAhead: () => Buffer) => boolean;

/**
 * Starts the process of a runner, which loads its modules and waits for the `start` message of
 * `keepRunner`. It exits when its channel closes.
 */
export function prepareRunner(env: Env, command = COMMAND): ChildProcess {
  const tracing = isTracing() ? forTracing(env) : { words: [], env: {} };
  const child = spawn(process.execPath, [...tracing.words, ...command], {
    env: { ...runnerEnv(env), ...tracing.env, [PREPARED_BY]: String(process.pid) },
    // Its logs go to stderr like this process's; stdout is for results.
    stdio: ['ignore', 2, 2, 'ipc'],
  });
  return child.once('error', () => undefined); // no memory, or no process: keepRunner sees it
}

type Kept = { command?: readonly string[]; prepared?: ChildProcess; runnerId?: string };

/**
 * Keeps a runner running, that of `prepared` first. Each has the id of the first, also when a newer
 * program has written its own. `command` is run by node; tests pass their own.
 */
export function keepRunner(
  env: Env,
  log: Log,
  { command = COMMAND, prepared, runnerId }: Kept = {},
): RunnerChild {
  const closing = new AbortController();
  const refused = Promise.withResolvers<number>();
  const ready = Promise.withResolvers<undefined>();
  let child: ChildProcess | undefined;
  let sessionServer: string | undefined;
  let hasWorked = false;
  let id = runnerId;
  const handedOff = openHandedOff();
  let first = prepared;

  /** One runner from its start to its exit. Throws the Exit, unless it has refused to start. */
  const run = async (): Promise<void> => {
    child = first !== undefined && isAlive(first) ? first : prepareRunner(env, command);
    first = undefined;
    const start: StartAsked = { type: 'start', core: env['TABERN_CORE'], runnerId: id };
    if (child.connected) child.send(start, () => {});
    child.on('message', (message) => {
      if (isSessionServerOpened(message)) {
        sessionServer = message.address;
        id = message.runnerId;
        ready.resolve(undefined);
      }
      if (isSocketClosed(message)) handedOff.closed(message.id);
    });
    const exit = await exitOf(child);
    handedOff.end();
    const wasReady = sessionServer !== undefined;
    sessionServer = undefined;
    // a machine on which a runner has worked may recover, and the API serves until then
    const mayRecover = hasWorked && !wasReady;
    hasWorked ||= wasReady;
    const isRefusal = REFUSALS.includes(exit.code ?? 0);
    if (closing.signal.aborted || !isRefusal || mayRecover) throw exit;
    refused.resolve(exit.code ?? EXIT.operator);
  };
  const kept = retry(run, {
    firstMs: BACKOFF_MIN_MS,
    maxMs: BACKOFF_MAX_MS,
    stableMs: LIVED_MS,
    isRetryable: (error) => error instanceof RunnerExit,
    onRetry: (error, backoffMs) => {
      const { code, signal } = error as RunnerExit;
      log.warn({ code, signal, backoffMs }, 'the runner exited; restarting it');
    },
    signal: closing.signal,
  }).catch((error: unknown) => {
    if (!(error instanceof RunnerExit)) throw error; // else the exit after close
  });

  return {
    ready: ready.promise,
    refused: refused.promise,
    handOver(address, socket, readAhead) {
      if (address !== sessionServer || !child?.connected) return false;
      const id = handedOff.keep(socket);
      const bytesRead = readAhead().toString('base64');
      const message: SocketHandOff = { type: 'connection', id, bytesRead };
      // Otherwise node would wait for the runner's end of this socket when the server closes, and
      // for ever for a dead runner (Server.close, with no worker left)
      Object.assign(socket, { server: undefined });
      // an error of the channel means that the runner and the session have ended: the client's
      // socket closes too
      child.send(message, socket, { keepOpen: true }, (error) => error && socket.destroy());
      return true;
    },
    samples: () => samplesOf(child),
    async drain() {
      closing.abort();
      if (child?.connected) child.send({ type: 'drain' } satisfies DrainAsked, () => {});
      await kept;
    },
    async close() {
      closing.abort();
      if (child?.connected) child.send({ type: 'end' } satisfies EndAsked, () => {});
      child?.kill('SIGTERM');
      const kill = setTimeout(() => child?.kill('SIGKILL'), CLOSE_MAX_MS);
      await kept;
      clearTimeout(kill);
    },
  };
}

function isAlive({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid !== undefined && exitCode === null && signalCode === null;
}

/** Code that escapes a handler must not find the operator's variables. */
export function runnerEnv(env: Env): Record<string, string> {
  const passed = Object.entries(env).filter(([name]) => {
    return PASSED.has(name) || (name.startsWith('TABERN_') && !KEPT.includes(name));
  });
  return Object.fromEntries(passed) as Record<string, string>;
}

/**
 * Passes tracing on: the preloaded modules, and the OTEL_* variables, which configure the exporter.
 */
export function forTracing(
  env: Env,
  execArgv: readonly string[] = process.execArgv,
): { words: string[]; env: Record<string, string> } {
  const own = Object.entries(env).filter(([name]) => name.startsWith('OTEL_'));
  const words = preloads(execArgv, env['NODE_OPTIONS']);
  return { words, env: Object.fromEntries(own) as Record<string, string> };
}

class RunnerExit extends Error {
  code: number | null = null;
  signal: NodeJS.Signals | null = null;
}

/** Without code and signal when the spawn failed, for want of memory or processes: retried. */
async function exitOf(child: ChildProcess): Promise<RunnerExit> {
  const exit = new RunnerExit('the runner exited');
  await once(child, 'exit').then(
    ([code, signal]) => Object.assign(exit, { code, signal }),
    () => undefined,
  );
  return exit;
}

/** In milliseconds: metrics of a busy or dying runner are omitted after this. Ours. */
const SAMPLES_TIMEOUT_MS = 2_000;

/** Empty while there is no runner. */
export async function samplesOf(child: ChildProcess | undefined): Promise<Samples> {
  if (!child?.connected) return [];
  const { promise, resolve } = Promise.withResolvers<Samples>();
  const receive = (message: unknown): void => {
    if (isMetricsTold(message)) resolve(message.samples);
  };
  const giveUp = (): void => resolve([]);
  const timer = setTimeout(giveUp, SAMPLES_TIMEOUT_MS);
  child.on('message', receive).once('exit', giveUp);
  try {
    const request: MetricsAsked = { type: 'metrics' };
    child.send(request, (error) => error && giveUp());
    return await promise;
  } finally {
    clearTimeout(timer);
    child.off('message', receive).off('exit', giveUp);
  }
}
