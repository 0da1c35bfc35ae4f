/**
 * How the process ends: exit codes as sysexits.h names them, so that a supervisor tells what a
 * restart can cure from what it cannot; and the signals that ask for an end.
 */
import { ANOTHER_RUNS, ConfigError, DataError } from '../../proto/common/env.ts';

export const EXIT = {
  /** What was asked for was refused, or failed. */
  failed: 1,
  /** Bad configuration or a wrong command line. */
  config: 2,
  /** EX_UNAVAILABLE: the port is taken; or core cannot be reached. */
  port: 69,
  /** EX_SOFTWARE: storage failed; a restart may cure it. */
  storage: 70,
  /** EX_TEMPFAIL: another instance runs on the data directory. */
  another: 75,
  /**
   * EX_CONFIG: the machine lacks something, such as a sandbox or a Chrome, or the data directory
   * its master key; a restart cures nothing.
   */
  operator: 78,
} as const;

/**
 * Ctrl-C under npm comes from the terminal and again from npm: what follows this fast is the same
 * wish. Ours.
 */
const SAME_WISH_MS = 500;

/** A reason to end, with its exit code. The message is for the operator. */
export class Exit extends Error {
  override readonly name = 'Exit';
  readonly code: number;

  constructor(code: number, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** Why core did not start, with its exit code: whatever is not a setting is the storage. */
export function coreFailure(error: unknown, dataDir: string): Exit {
  const { message } = error as Error;
  if (error instanceof DataError) return new Exit(EXIT.operator, message, error);
  if (error instanceof ConfigError) {
    const isTaken = message.startsWith(ANOTHER_RUNS);
    return new Exit(isTaken ? EXIT.another : EXIT.config, message, error);
  }
  return new Exit(EXIT.storage, `cannot use the data directory ${dataDir}: ${message}`, error);
}

/** Why the gateway did not start, with its exit code. */
export function gatewayFailure(error: unknown, place: string): Exit {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') {
    return new Exit(EXIT.port, `${place} is in use: stop what uses it or set TABERN_PORT`, error);
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

/** Aborts when it is asked to end, with the Exit to end by; for a command that tidies up first. */
export function endedBySignal(whatIsLeft: string): AbortSignal {
  const over = new AbortController();
  void askedToEnd().then((signal) =>
    over.abort(new Exit(EXIT.failed, `ended by ${signal}: ${whatIsLeft}`)),
  );
  return over.signal;
}
