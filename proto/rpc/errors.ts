/**
 * The table of error reasons: every failure on which a caller can act, with its gRPC code and HTTP
 * status. Source: proto/spec/errors.md. service-errors.ts encodes a Fault for gRPC; the gateway
 * maps the reason to {statusCode, error, message}. Here only types are imported, because core's
 * threads load this file.
 */
import type { status } from '@grpc/grpc-js';

/** Retry advice: `yes` after `retryAfterS`, `no` never, `client` by the client's own rules. */
type Row = {
  code: keyof typeof status;
  http: number;
  retry: 'yes' | 'no' | 'client';
  retryAfterS?: number;
};

/** Reason -> gRPC code and HTTP status. A new row needs a row in the README of this folder. */
export const REASONS = {
  API_KEY_MISSING: { code: 'UNAUTHENTICATED', http: 401, retry: 'no' },
  API_KEY_INVALID: { code: 'UNAUTHENTICATED', http: 401, retry: 'no' },
  SIGNING_KEY_INVALID: { code: 'UNAUTHENTICATED', http: 401, retry: 'no' },
  PROJECT_MISMATCH: { code: 'PERMISSION_DENIED', http: 403, retry: 'no' },
  FEATURE_DISABLED: { code: 'PERMISSION_DENIED', http: 403, retry: 'no' },
  TOKEN_REQUIRED: { code: 'PERMISSION_DENIED', http: 403, retry: 'no' },
  CROSS_ORIGIN: { code: 'PERMISSION_DENIED', http: 403, retry: 'no' },
  ADDRESS_REFUSED: { code: 'PERMISSION_DENIED', http: 403, retry: 'no' },
  URL_SIGNATURE_INVALID: { code: 'PERMISSION_DENIED', http: 403, retry: 'no' },
  MALFORMED_JSON: { code: 'INVALID_ARGUMENT', http: 400, retry: 'no' },
  MALFORMED_REQUEST: { code: 'INVALID_ARGUMENT', http: 400, retry: 'no' },
  INVALID_FIELD: { code: 'INVALID_ARGUMENT', http: 400, retry: 'no' },
  INVALID_CURSOR: { code: 'INVALID_ARGUMENT', http: 400, retry: 'no' },
  REGION_UNSUPPORTED: { code: 'INVALID_ARGUMENT', http: 400, retry: 'no' },
  ENDPOINT_NOT_ALLOWED: { code: 'INVALID_ARGUMENT', http: 400, retry: 'no' },
  UNKNOWN_EVENT_TYPE: { code: 'INVALID_ARGUMENT', http: 400, retry: 'no' },
  RESOURCE_NOT_FOUND: { code: 'NOT_FOUND', http: 404, retry: 'no' },
  ROUTE_NOT_FOUND: { code: 'UNIMPLEMENTED', http: 404, retry: 'no' },
  METHOD_NOT_ALLOWED: { code: 'UNIMPLEMENTED', http: 405, retry: 'no' },
  UPGRADE_REQUIRED: { code: 'UNIMPLEMENTED', http: 426, retry: 'no' },
  NOT_IMPLEMENTED: { code: 'UNIMPLEMENTED', http: 501, retry: 'no' },
  UNSUPPORTED_MEDIA_TYPE: { code: 'INVALID_ARGUMENT', http: 415, retry: 'no' },
  CONTEXT_NAME_TAKEN: { code: 'ALREADY_EXISTS', http: 409, retry: 'no' },
  LABEL_NAME_TAKEN: { code: 'ALREADY_EXISTS', http: 409, retry: 'no' },
  SECRET_NAME_TAKEN: { code: 'ALREADY_EXISTS', http: 409, retry: 'no' },
  PROJECT_NAME_TAKEN: { code: 'ALREADY_EXISTS', http: 409, retry: 'no' },
  ENDPOINT_EXISTS: { code: 'ALREADY_EXISTS', http: 409, retry: 'no' },
  DELIVERY_NOT_ENDED: { code: 'FAILED_PRECONDITION', http: 409, retry: 'no' },
  SESSION_PENDING: { code: 'FAILED_PRECONDITION', http: 409, retry: 'yes', retryAfterS: 1 },
  SESSION_NOT_ENDED: { code: 'FAILED_PRECONDITION', http: 409, retry: 'no' },
  FUNCTION_IN_USE: { code: 'FAILED_PRECONDITION', http: 409, retry: 'no' },
  SESSION_OF_INVOCATION: { code: 'FAILED_PRECONDITION', http: 409, retry: 'no' },
  HANDOFF_PENDING: { code: 'FAILED_PRECONDITION', http: 409, retry: 'no' },
  TOO_MANY_HANDOFFS: { code: 'FAILED_PRECONDITION', http: 409, retry: 'no' },
  LAST_API_KEY: { code: 'FAILED_PRECONDITION', http: 409, retry: 'no' },
  TOO_MANY_API_KEYS: { code: 'FAILED_PRECONDITION', http: 409, retry: 'no' },
  TOO_MANY_SECRETS: { code: 'FAILED_PRECONDITION', http: 409, retry: 'no' },
  TOO_MANY_EXTENSIONS: { code: 'RESOURCE_EXHAUSTED', http: 429, retry: 'yes', retryAfterS: 5 },
  TOO_MANY_CERTIFICATES: { code: 'FAILED_PRECONDITION', http: 409, retry: 'no' },
  TOO_MANY_LABELS: { code: 'FAILED_PRECONDITION', http: 409, retry: 'no' },
  TOO_MANY_SCHEDULES: { code: 'FAILED_PRECONDITION', http: 409, retry: 'no' },
  TOO_MANY_WEBHOOKS: { code: 'FAILED_PRECONDITION', http: 409, retry: 'no' },
  QUOTA_EXCEEDED: { code: 'FAILED_PRECONDITION', http: 409, retry: 'no' },
  LEASE_LOST: { code: 'ABORTED', http: 409, retry: 'no' },
  SESSION_ENDED: { code: 'FAILED_PRECONDITION', http: 410, retry: 'no' },
  RECORDING_EXPIRED: { code: 'NOT_FOUND', http: 410, retry: 'no' },
  URL_EXPIRED: { code: 'NOT_FOUND', http: 410, retry: 'no' },
  BODY_TOO_LARGE: { code: 'RESOURCE_EXHAUSTED', http: 413, retry: 'no' },
  URI_TOO_LONG: { code: 'INVALID_ARGUMENT', http: 414, retry: 'no' },
  HEADERS_TOO_LARGE: { code: 'RESOURCE_EXHAUSTED', http: 431, retry: 'no' },
  IDEMPOTENCY_MISMATCH: { code: 'ABORTED', http: 422, retry: 'no' },
  RECORDING_DISABLED: { code: 'FAILED_PRECONDITION', http: 422, retry: 'no' },
  BUILD_FAILED: { code: 'FAILED_PRECONDITION', http: 422, retry: 'no' },
  ARCHIVE_INVALID: { code: 'INVALID_ARGUMENT', http: 422, retry: 'no' },
  CONCURRENCY_LIMIT: { code: 'RESOURCE_EXHAUSTED', http: 429, retry: 'yes', retryAfterS: 5 },
  RATE_LIMIT: { code: 'RESOURCE_EXHAUSTED', http: 429, retry: 'yes', retryAfterS: 5 },
  QUEUE_FULL: { code: 'RESOURCE_EXHAUSTED', http: 429, retry: 'yes', retryAfterS: 10 },
  REQUEST_TIMEOUT: { code: 'DEADLINE_EXCEEDED', http: 408, retry: 'client' },
  CANCELLED: { code: 'CANCELLED', http: 499, retry: 'client' },
  OUTCOME_UNKNOWN: { code: 'UNKNOWN', http: 500, retry: 'no' },
  INTERNAL: { code: 'INTERNAL', http: 500, retry: 'client' },
  DATA_CORRUPT: { code: 'DATA_LOSS', http: 500, retry: 'no' },
  PAGE_UNREACHABLE: { code: 'UNAVAILABLE', http: 502, retry: 'no' },
  SEARCH_FAILED: { code: 'UNAVAILABLE', http: 502, retry: 'yes', retryAfterS: 5 },
  PAGE_TOO_LARGE: { code: 'RESOURCE_EXHAUSTED', http: 502, retry: 'no' },
  BROWSER_FAILED: { code: 'UNAVAILABLE', http: 502, retry: 'yes', retryAfterS: 1 },
  RECORDING_STORE: { code: 'UNAVAILABLE', http: 502, retry: 'yes', retryAfterS: 1 },
  BLOBS_UNAVAILABLE: { code: 'UNAVAILABLE', http: 503, retry: 'yes', retryAfterS: 5 },
  CORE_UNAVAILABLE: { code: 'UNAVAILABLE', http: 503, retry: 'yes', retryAfterS: 1 },
  KEYS_NOT_READY: { code: 'UNAVAILABLE', http: 503, retry: 'yes', retryAfterS: 1 },
  STORAGE_FULL: { code: 'UNAVAILABLE', http: 503, retry: 'yes', retryAfterS: 30 },
  DRAINING: { code: 'UNAVAILABLE', http: 503, retry: 'yes', retryAfterS: 1 },
  NO_RUNNER: { code: 'UNAVAILABLE', http: 503, retry: 'yes', retryAfterS: 5 },
  PAGE_TIMEOUT: { code: 'DEADLINE_EXCEEDED', http: 504, retry: 'no' },
  DEADLINE: { code: 'DEADLINE_EXCEEDED', http: 504, retry: 'client' },
} as const satisfies Record<string, Row>;

export type Reason = keyof typeof REASONS;
export type Facts = Readonly<Record<string, string | number | boolean>>;

/** Of an error that no caller can act on. */
export const UNEXPECTED = ['INTERNAL', 'An unexpected error occurred.'] as const;

/**
 * An error on which the caller can act. `message` is for the caller; `facts` contains every fact of
 * it.
 */
export class Fault extends Error {
  override readonly name = 'Fault';
  readonly reason: Reason;
  readonly facts: Facts;

  constructor(reason: Reason, message: string, facts: Facts = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.reason = reason;
    this.facts = facts;
  }

  /** Its row of the table. */
  get row(): Row {
    return REASONS[this.reason];
  }
}

/** 400 for one invalid field. `field` is spelled as in REST; the message begins with it. */
export function invalidField(field: string, problem: string): Fault {
  return new Fault('INVALID_FIELD', `\`${field}\` ${problem}`, { field });
}

/** 404. `type` is the capitalised noun, such as `Context`. */
export function notFound(type: string, id: string): Fault {
  return new Fault('RESOURCE_NOT_FOUND', `${type} not found.`, { type, id });
}

/** The error as a Fault; other errors become INTERNAL, with the cause for the log only. */
export function asFault(error: unknown): Fault {
  if (error instanceof Fault) return error;
  return new Fault(...UNEXPECTED, {}, error);
}
