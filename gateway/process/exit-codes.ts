/**
 * Exit of the process: exit codes of sysexits.h, so that a supervisor can tell failures that a
 * restart may fix from others; and shutdown signals.
 */
import { ANOTHER_RUNS, ConfigError, DataError } from '../../proto/common/env.ts';

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
  /**
   * EX_CONFIG: the machine lacks a sandbox or a Chrome, or the data directory its master key; a
   * restart does not help.
   */
  operator: 78,
} as const;

/**
 * Ctrl-C under npm is received from the terminal and again from npm: signals within this interval
 * count once. Ours.
 */
const SAME_WISH_MS = 500;

/** A reason to exit, with its exit code. The message is for the operator. */
export class Exit extends Error {
  override readonly name = 'Exit';
  readonly code: number;

  constructor(code: number, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** The Exit for a failed start of core: every failure except a setting is a storage failure. */
export function coreFailure(error: unknown, dataDir: string): Exit {
  const { message } = error as Error;
  if (error instanceof DataError) return new Exit(EXIT.operator, message, error);
  if (error instanceof ConfigError) {
    const isTaken = message.startsWith(ANOTHER_RUNS);
    return new Exit(isTaken ? EXIT.another : EXIT.config, message, error);
  }
  return new Exit(EXIT.storage, `cannot use the data directory ${dataDir}: ${message}`, error);
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
export function askedToEnd(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let askedAt: number | undefined;
    const asked = (signal: NodeJS.Signals) => {
      const now = performance.now();
      if (askedAt !== undefined && now - askedAt > SAME_WISH_MS) process.exit(1);
      askedAt ??= now;
      resolve(signal);
    };
    process.on('SIGTERM', asked);
    process.on('SIGINT', asked);
  });
}

/** Aborts at a shutdown signal with the Exit to end by; for commands that clean up first. */
export function endedBySignal(whatIsLeft: string): AbortSignal {
  const over = new AbortController();
  void askedToEnd().then((signal) =>
    over.abort(new Exit(EXIT.failed, `ended by ${signal}: ${whatIsLeft}`)),
  );
  return over.signal;
}
