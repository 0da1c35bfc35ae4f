/**
 * Errors of S3, as sentences that name the setting and what to do. No key or signature is in one:
 * only the code of the answer is used, never its text.
 */
import { Fault } from '../../../proto/rpc/errors.ts';
import type { S3Place } from './place.ts';

/** Of Node, for a server's certificate. Source: https://nodejs.org/api/tls.html */
const CERTIFICATE = /^(CERT_|UNABLE_TO_|ERR_TLS_CERT_)|SELF_SIGNED/;

/** An answer that is no success. `code` is the server's, such as `NoSuchKey`. */
export class S3Error extends Error {
  readonly status: number;
  readonly code: string;
  /** The region that the server expects, when it names one. */
  readonly region: string;

  constructor({ status, code, region = '' }: { status: number; code: string; region?: string }) {
    super(`S3 answered ${status} ${code}`);
    this.status = status;
    this.code = code;
    this.region = region;
  }
}

export function isMissing(error: unknown): boolean {
  return error instanceof S3Error && (error.code === 'NoSuchKey' || error.code === 'NotFound');
}

/** Of a range of an empty object. */
export function isOutside(error: unknown): boolean {
  return error instanceof S3Error && error.code === 'InvalidRange';
}

export function isNoUpload(error: unknown): boolean {
  return error instanceof S3Error && error.code === 'NoSuchUpload';
}

/** The sentence for the operator. */
export function sentenceOf(error: unknown, { bucket, endpoint, region }: S3Place): string {
  if (!(error instanceof S3Error)) {
    const code = codeOf(error);
    const problem = CERTIFICATE.test(code)
      ? `has a certificate that is not accepted (${code}): ` +
        'set NODE_EXTRA_CA_CERTS to a file with its authority, or renew it.'
      : `does not answer (${code}): set its address, or start it.`;
    return `TABERN_BLOBS_ENDPOINT, ${endpoint}, ${problem}`;
  }
  switch (error.code) {
    case 'SignatureDoesNotMatch':
      return (
        'TABERN_BLOBS_SECRET_ACCESS_KEY is not the secret of TABERN_BLOBS_ACCESS_KEY_ID, ' +
        'or the server does not know that key: set both.'
      );
    case 'InvalidAccessKeyId':
      return 'TABERN_BLOBS_ACCESS_KEY_ID is a key that the server does not know: set another.';
    case 'AccessDenied':
      return (
        `TABERN_BLOBS_ACCESS_KEY_ID may not use the bucket ${bucket}: ` +
        'allow it to list, read, write and delete objects, and to list and abort uploads.'
      );
    case 'NoSuchBucket':
      return (
        `TABERN_BLOBS names the bucket ${bucket}, which does not exist: ` +
        'create it, or set another.'
      );
    case 'AuthorizationHeaderMalformed':
    case 'PermanentRedirect':
    case 'TemporaryRedirect':
      return (
        `TABERN_BLOBS_REGION, ${region}, is not the region of the bucket` +
        `${error.region === '' ? '' : `: set ${error.region}`}.`
      );
    case 'RequestTimeTooSkewed':
      return "This machine's clock differs from the bucket's by minutes: set the clock, by NTP.";
    default:
      return `TABERN_BLOBS_ENDPOINT, ${endpoint}, answers ${error.status} ${error.code}.`;
  }
}

/** For callers: the operator's sentence is in the log and in /readyz. */
export function unavailable(cause: unknown): Fault {
  if (cause instanceof Fault) return cause;
  const message = 'The storage of files is not reachable. Retry the request.';
  return new Fault('BLOBS_UNAVAILABLE', message, {}, cause);
}

/** Of a failed connection. */
function codeOf(error: unknown): string {
  const { cause, code, name } = error as { cause?: unknown; code?: string; name?: string };
  if (typeof code === 'string') return code;
  return cause === undefined ? (name ?? 'unknown') : codeOf(cause);
}
