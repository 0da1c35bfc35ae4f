/**
 * The runner as a child of `tabern serve`: untrusted code and Chrome never share a process with
 * state. It is started again when it dies, with a back-off; not when it refuses for a reason that a
 * restart cannot cure. The IPC channel is its life line: when this process is gone, however it
 * went, the channel closes and the runner ends all its work.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Env } from '../../proto/common/env.ts';
import type { Log } from '../../proto/common/log.ts';
import type { Samples } from '../../proto/common/metrics.ts';
import {
  isMetricsTold,
  isSessionServerOpened,
  type MetricsAsked,
  type SocketHandOff,
} from '../../proto/common/runner-ipc.ts';
import { SETTINGS } from '../../proto/common/settings/table.ts';
import { isTracing } from '../../proto/common/tracing.ts';
import { EXIT } from './exit-codes.ts';
import { preloads } from './preloads.ts';

const BIN = fileURLToPath(new URL('../bin.ts', import.meta.url));
/**
 * In milliseconds: between deaths, doubling; from the beginning again once a runner lived for a
 * while. Ours.
 */
const BACKOFF_MIN_MS = 200;
const BACKOFF_MAX_MS = 10_000;
const LIVED_MS = 30_000;
/** A runner that was asked to end and did not is killed. Ours: 5 s of the drain's 30 are core's. */
const CLOSE_MAX_MS = 25_000;

/**
 * What a runner needs of the machine; then what its builds need to reach the operator's package
 * registry, which may stand behind a proxy and a certificate authority of its own.
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
  ...SECRETS.flatMap(({ name }) => [`TABERN_${name}`, `TABERN_${name}_FILE`]),
  ...['TABERN_TLS_KEY_FILE', 'TABERN_CONFIG'],
];
/** Exit codes that a restart cannot cure. */
const REFUSALS: readonly number[] = [EXIT.config, EXIT.operator];

export type RunnerChild = {
  /**
   * Gives the runner a connection, with what it is to read first. False when that door is not its:
   * the connection is as it was.
   */
  handOver: HandOver;
  /** Resolves with the exit code of a runner that refuses to start; its own words are on stderr. */
  refused: Promise<number>;
  /** Its metrics; nothing when it has none, or does not say so in time. */
  samples(): Promise<Samples>;
  /** Asks it to drain; kills it when it does not end. */
  close(): Promise<void>;
};

/** `said` is asked for when the connection goes. */
export type HandOver = (address: string, socket: Socket, said: () => Buffer) => boolean;

/** Starts a runner and keeps one running. `command` is what node runs; tests give their own. */
export function keepRunner(
  env: Env,
  log: Log,
  command: readonly string[] = [BIN, 'runner'],
): RunnerChild {
  const closing = new AbortController();
  const refused = Promise.withResolvers<number>();
  let child: ChildProcess | undefined;
  let door: string | undefined;
  const tracing = isTracing() ? forTracing(env) : { words: [], env: {} };

  const keep = async () => {
    for (let backoffMs = BACKOFF_MIN_MS; !closing.signal.aborted; ) {
      const startedAt = performance.now();
      child = spawn(process.execPath, [...tracing.words, ...command], {
        env: { ...runnerEnv(env), ...tracing.env },
        // Its logs go to stderr as ours do; stdout is for what a person asked.
        stdio: ['ignore', 2, 2, 'ipc'],
      });
      child.on('message', (message) => {
        if (isSessionServerOpened(message)) door = message.address;
      });
      const [code, signal] = await ended(child);
      door = undefined;
      if (closing.signal.aborted) return;
      if (REFUSALS.includes(code ?? 0)) return refused.resolve(code ?? EXIT.operator);
      if (performance.now() - startedAt > LIVED_MS) backoffMs = BACKOFF_MIN_MS;
      log.warn({ code, signal, backoffMs }, 'the runner ended; starting another');
      await pause(backoffMs, undefined, { signal: closing.signal }).catch(() => undefined);
      backoffMs = Math.min(backoffMs * 2, BACKOFF_MAX_MS);
    }
  };
  const kept = keep();

  return {
    refused: refused.promise,
    handOver(address, socket, said) {
      if (address !== door || !child?.connected) return false;
      const message: SocketHandOff = { type: 'connection', bytesRead: said().toString('base64') };
      // Node would ask the runner for this socket's end when the server closes, and wait for ever
      // for one that has died (Server.close, with no worker left)
      Object.assign(socket, { server: undefined });
      // an error is the runner's end, and the session's with it: the client's socket closes too
      child.send(message, socket, { keepOpen: false }, () => socket.destroy());
      return true;
    },
    samples: () => samplesOf(child),
    async close() {
      closing.abort();
      child?.kill('SIGTERM');
      const kill = setTimeout(() => child?.kill('SIGKILL'), CLOSE_MAX_MS);
      await kept;
      clearTimeout(kill);
    },
  };
}

/** The runner's environment: a handler's escape must not find the operator's. */
export function runnerEnv(env: Env): Record<string, string> {
  const passed = Object.entries(env).filter(([name]) => {
    return PASSED.has(name) || (name.startsWith('TABERN_') && !KEPT.includes(name));
  });
  return Object.fromEntries(passed) as Record<string, string>;
}

/**
 * An SDK that makes spans here makes them there: the modules that were preloaded, and the variables
 * of OpenTelemetry, which say where spans go.
 */
export function forTracing(
  env: Env,
  execArgv: readonly string[] = process.execArgv,
): { words: string[]; env: Record<string, string> } {
  const own = Object.entries(env).filter(([name]) => name.startsWith('OTEL_'));
  const words = preloads(execArgv, env['NODE_OPTIONS']);
  return { words, env: Object.fromEntries(own) as Record<string, string> };
}

async function ended(child: ChildProcess): Promise<[number | null, NodeJS.Signals | null]> {
  try {
    return (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  } catch {
    return [null, null]; // it could not be spawned, for want of memory or processes: tried again
  }
}

/** In milliseconds: a runner that is busy or dying is left out of an answer. Ours. */
const PATIENCE_MS = 2_000;

/** Nothing while there is no runner. */
export async function samplesOf(child: ChildProcess | undefined): Promise<Samples> {
  if (!child?.connected) return [];
  const { promise, resolve } = Promise.withResolvers<Samples>();
  const hear = (message: unknown): void => {
    if (isMetricsTold(message)) resolve(message.samples);
  };
  const giveUp = (): void => resolve([]);
  const timer = setTimeout(giveUp, PATIENCE_MS);
  child.on('message', hear).once('exit', giveUp);
  try {
    const asked: MetricsAsked = { type: 'metrics' };
    child.send(asked, (error) => error && giveUp());
    return await promise;
  } finally {
    clearTimeout(timer);
    child.off('message', hear).off('exit', giveUp);
  }
}
