/**
 * Exit of the process: shutdown signals, and exit codes of sysexits.h, by which a supervisor
 * distinguishes failures that a restart may fix.
 */
import { noAccess } from '../../proto/common/durable.ts';
import { ANOTHER_RUNS, ConfigError, DataError } from '../../proto/common/env.ts';
import type { Log } from '../../proto/common/log.ts';
import { openProcessEnd, type ProcessEnd, SAME_SIGNAL_MS } from '../../proto/drain/end.ts';

export const EXIT = {
  /** The request was refused or failed. */
  failed: 1,
  /** Bad configuration or a wrong command line. */
  config: 2,
  /** EX_UNAVAILABLE: the port is in use, or core is unreachable. */
  port: 69,
  /** EX_SOFTWARE: storage failed; a restart may help. */
  storage: 70,
  /** EX_TEMPFAIL: another instance uses the data directory. */
  another: 75,
  /** EX_CONFIG: a sandbox, a Chrome or the master key is missing; a restart does not help. */
  operator: 78,
} as const;

/** A reason to exit, with its exit code. The message is for the operator. */
export class Exit extends Error {
  override readonly name = 'Exit';
  readonly code: number;

  constructor(code: number, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** What is wrong with a database elsewhere begins with its setting. */
const DATABASES = ['TABERN_DATABASE_URL', 'TABERN_DATABASE_DIRECT_URL'];

/** The Exit for a failed start of core: every failure except a setting is a storage failure. */
export function coreFailure(error: unknown, dataDir: string): Exit {
  const { message } = error as Error;
  if (error instanceof DataError) return new Exit(EXIT.operator, message, error);
  if (error instanceof ConfigError) {
    const isTaken = message.startsWith(ANOTHER_RUNS);
    return new Exit(isTaken ? EXIT.another : EXIT.config, message, error);
  }
  const denied = noAccess(error, dataDir);
  if (denied !== undefined) return new Exit(EXIT.config, denied, error);
  const isElsewhere = DATABASES.some((setting) => message.startsWith(setting));
  const words = isElsewhere ? message : `cannot use the data directory ${dataDir}: ${message}`;
  return new Exit(EXIT.storage, words, error);
}

/** The Exit for a failed start of the gateway. */
export function gatewayFailure(error: unknown, place: string): Exit {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') {
    return new Exit(
      EXIT.port,
      `${place} is in use: stop the process that uses it or set TABERN_PORT`,
      error,
    );
  }
  return new Exit(EXIT.config, `cannot listen on ${place}: ${message}`, error);
}

/** Resolves at the first SIGTERM or SIGINT. A second ends the process at once. */
export function shutdownSignal(): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let firstAt: number | undefined;
  const receive = (signal: NodeJS.Signals) => {
    const now = performance.now();
    if (firstAt !== undefined && now - firstAt > SAME_SIGNAL_MS) process.exit(1);
    firstAt ??= now;
    resolve(signal);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, receive);
  return promise;
}

/**
 * The end of a service or a gateway, which drains first when it is given a time. A signal after the
 * drain ends the process at once, or does what `onFurther` does instead.
 */
export function openEnd(drainS: number, log: Log, onFurther = exitAtOnce): ProcessEnd {
  return openProcessEnd({ drainS, log, onFurther });
}

export function exitAtOnce(): void {
  process.exit(1);
}

/** Aborts at a shutdown signal with the Exit to end by; for commands that clean up first. */
export function endedBySignal(whatIsLeft: string): AbortSignal {
  const ended = new AbortController();
  void shutdownSignal().then((signal) =>
    ended.abort(new Exit(EXIT.failed, `ended by ${signal}: ${whatIsLeft}`)),
  );
  return ended.signal;
}
