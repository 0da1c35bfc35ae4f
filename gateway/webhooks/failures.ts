/**
 * Maps the error of an attempt (of undici, node:tls or the guard) to an outcome and one sentence.
 * Pure.
 */
import type { AttemptReport_Outcome as Outcome } from '../../proto/gen/tabern/v1/deliveries.pb.ts';
import { BlockedAddress, UnresolvedName } from './ssrf-guard.ts';

export type Failure = { outcome: Outcome; error: string };

/** TLS error codes of certificates, with a sentence for the endpoint's operator. */
const TLS_PROBLEMS: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate chain is self-signed',
  UNABLE_TO_GET_ISSUER_CERT: 'the certificate is of an unknown authority',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate is of an unknown authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the certificate is of an unknown authority',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another name',
  CERT_HAS_EXPIRED: 'the certificate has expired',
  CERT_NOT_YET_VALID: 'the certificate is not valid yet',
  CERT_REVOKED: 'the certificate was revoked',
};
const CONNECT_PROBLEMS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  EADDRNOTAVAIL: 'the host cannot be reached',
  ETIMEDOUT: 'no connection was made in time',
  UND_ERR_CONNECT_TIMEOUT: 'no connection was made in time',
};
/** A failure of this service: nothing was sent, and the endpoint is not blamed. */
const OURS: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM']);
const CUT: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** `wasSent`: the request had a connection. Before that, a reset is a failed connection. */
export function failureOf(error: unknown, wasSent: boolean): Failure {
  const codes = codesOf(error);
  if (isA(error, BlockedAddress)) return { outcome: 'BLOCKED', error: 'address not allowed' };
  if (isA(error, UnresolvedName)) return { outcome: 'DNS', error: 'the name did not resolve' };
  if (!wasSent && codes.some((code) => OURS.has(code))) return { outcome: 'UNSENT', error: '' };
  const tls = firstOf(TLS_PROBLEMS, codes);
  if (tls) return { outcome: 'TLS', error: tls };
  if (codes.some((code) => /^(CERT_|UNABLE_TO_|INVALID_(CA|PURPOSE)|PATH_LENGTH)/.test(code))) {
    return { outcome: 'TLS', error: 'the certificate is not valid' };
  }
  if (codes.some((code) => /^(ERR_SSL|ERR_TLS|EPROTO)/.test(code))) {
    return { outcome: 'TLS', error: 'the TLS handshake failed' };
  }
  const connect = firstOf(CONNECT_PROBLEMS, codes);
  if (connect && !wasSent) return { outcome: 'CONNECT', error: connect };
  if (!wasSent) return { outcome: 'CONNECT', error: 'the connection was not made' };
  const isCut = connect !== undefined || codes.some((code) => CUT.has(code));
  // undici also reports an answer that requests an upgrade as a socket error.
  if (isCut && !(error instanceof Error && /upgrade|bad response/.test(error.message))) {
    return { outcome: 'RESET', error: 'the connection was closed before an answer' };
  }
  return { outcome: 'PROTOCOL', error: 'the answer is not valid HTTP' };
}

/** The codes of an error, of its causes and of its aggregated errors, outermost first. */
function codesOf(error: unknown): string[] {
  return familyOf(error).flatMap((one) =>
    'code' in one && typeof one.code === 'string' ? [one.code] : [],
  );
}

function isA(error: unknown, type: new (...args: never[]) => Error): boolean {
  return familyOf(error).some((one) => one instanceof type);
}

function familyOf(error: unknown, depth = 0): Error[] {
  if (!(error instanceof Error) || depth > 4) return [];
  const members = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  return [error, ...[error.cause, ...members].flatMap((one) => familyOf(one, depth + 1))];
}

function firstOf(problems: Readonly<Record<string, string>>, codes: string[]): string | undefined {
  const code = codes.find((one) => Object.hasOwn(problems, one));
  return code === undefined ? undefined : problems[code];
}
