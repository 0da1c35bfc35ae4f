/**
 * Errors of PostgreSQL and of the connection to it, as the rest of core knows them. Details of the
 * server's errors are dropped: they contain values of rows.
 */
import { AwayError, ConfigError } from '../../../../proto/common/env.ts';
import { unknownOutcome } from '../../../../proto/rpc/connection-errors.ts';
import { Fault } from '../../../../proto/rpc/errors.ts';

/** The connection is lost, or the server does not accept work at present. */
export class ConnectionLost extends Error {
  override name = 'ConnectionLost';
}

const DISK_FULL = '53100';
const UNIQUE = '23505';
const READ_ONLY = '25006';

/**
 * Serialization failure, deadlock, lock not available; a row that another operation inserted at the
 * same time. The operation is repeated, and decides on what is there then.
 */
const REPEATED: ReadonlySet<string> = new Set(['40001', '40P01', '55P03', UNIQUE]);

/**
 * The classes 08 (connection), 28 (authorization) and 57P (shutdown), 3D (no such database), 53300
 * (too many connections), 57014 (statement timeout), and 25006 (read-only, as after a failover);
 * errors of the driver and of sockets.
 */
const LOST =
  /^(08|28|3D|57P|53[23]|57014|25006|25P0[23]|CONNECT|E[A-Z]{4,}|SELF_|UNABLE_|DEPTH_|CERT_|ERR_)/;

export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** Of a connection that takes no writes. */
export function readOnly(): Error {
  return Object.assign(new Error('the server is read-only'), { code: READ_ONLY });
}

export function isReadOnly(error: unknown): boolean {
  return codeOf(error) === READ_ONLY;
}

/** The server has no free connection. */
export function isFull(error: unknown): boolean {
  return codeOf(error) === '53300';
}

export function isRepeated(error: unknown): boolean {
  return REPEATED.has(codeOf(error));
}

export function isLost(error: unknown): boolean {
  return error instanceof ConnectionLost || LOST.test(codeOf(error));
}

/** What the caller of the operation receives. `isCommitting`: the commit may have succeeded. */
export function toFault(error: unknown, isCommitting: boolean): unknown {
  if (error instanceof Fault) return error;
  if (codeOf(error) === DISK_FULL) {
    return new Fault('STORAGE_FULL', 'The disk of the database is full.');
  }
  if (codeOf(error) !== UNIQUE && (isLost(error) || isRepeated(error))) {
    if (isCommitting && !isRepeated(error)) return unknownOutcome(withoutDetails(error));
    const message = 'The database is not available. Try again.';
    return new Fault('CORE_UNAVAILABLE', message, {}, withoutDetails(error));
  }
  return withoutDetails(error);
}

function withoutDetails(error: unknown): unknown {
  const code = codeOf(error);
  if (!(error instanceof Error) || code === '') return error;
  const plain = Object.assign(new Error(`${code} ${error.message}`), { code });
  if (error.stack !== undefined) plain.stack = error.stack;
  return plain;
}

/** The end of a sentence about the setting, by the beginning of the error's code. */
const REFUSED: readonly [code: RegExp, words: string][] = [
  [/^28P01/, 'has a user or a password that the server refuses'],
  [
    /^28/,
    'names a server that refuses the user, or by its pg_hba.conf this machine, or connections ' +
      'without TLS: then add ?sslmode=require',
  ],
  [/^3D000/, 'names a database that does not exist: create it with createdb'],
  [/^42501/, 'has a user who may not create tables in the database: make it the owner'],
  [/^42704/, 'has a parameter that the server does not know'],
  [/^ENOTFOUND/, 'names a host that is not found'],
  [/^ERR_TLS_CERT_ALTNAME/, 'names a server whose certificate has other names: use one of them'],
  [/^CERT_(HAS_EXPIRED|NOT_YET)/, 'names a server whose certificate is not valid now: renew it'],
  [
    /^(SELF_|UNABLE_|CERT_|DEPTH_)/,
    'names a server whose certificate is not trusted: set TABERN_DATABASE_CA_FILE to its ' +
      'authorities',
  ],
];
/** These may pass without a change of the settings. */
const PASSING: readonly [code: RegExp, words: string][] = [
  [/^53300/, 'names a server without a free connection: raise its max_connections'],
  [/^53100/, 'names a server whose disk is full: make room on it'],
  [/^25006/, 'names a server that only reads, as a standby does: set the address of the primary'],
  [
    /^ECONNRESET/,
    'names a server that ends the connection: it starts or stops, or it has no TLS while ' +
      'TABERN_DATABASE_CA_FILE or an sslmode is set',
  ],
  [
    /^(ECONN|ETIMEDOUT|EHOST|ENET|EAI_AGAIN|EPIPE|ENOENT|EACCES|CONN|57P0|08)/,
    'names a server that does not answer: start it, or set its address',
  ],
];

/** An error of the start, for the operator: its sentence names the setting. */
export function startError(error: unknown, setting: string): unknown {
  if (error instanceof ConfigError) return error;
  const code = error instanceof ConnectionLost ? 'CONNECTION' : codeOf(error);
  const wordsIn = (table: typeof REFUSED) => table.find(([pattern]) => pattern.test(code))?.[1];
  const cause = withoutDetails(error);
  const [refused, passing] = [wordsIn(REFUSED), wordsIn(PASSING)];
  if (refused !== undefined) return new ConfigError(`${setting} ${refused} (${code})`, { cause });
  if (passing !== undefined) return new AwayError(`${setting} ${passing} (${code})`, { cause });
  if (code === '' || !(cause instanceof Error)) return cause;
  return new Error(`${setting}: ${cause.message}`, { cause });
}

/** For an operation's fault, a sentence that names the setting; undefined for another fault. */
export function databaseProblem(fault: unknown): string | undefined {
  const cause = fault instanceof Fault ? fault.cause : fault;
  const problem = startError(cause, 'TABERN_DATABASE_URL');
  if (problem === cause || !(problem instanceof Error)) return undefined;
  return `${problem.message}.`;
}
