/**
 * The table of error reasons: every failure on which a caller can act, with its gRPC code and HTTP
 * status. Source: proto/spec/errors.md. A Fault is sent as google.rpc.Status with one
 * ErrorInfo{reason, domain, metadata} in grpc-status-details-bin, so that any gRPC client reads it
 * with its standard library; the gateway maps the reason to {statusCode, error, message}.
 */
import { status as Code, Metadata, type ServiceError } from '@grpc/grpc-js';
import {
  BadRequest,
  ErrorInfo,
  QuotaFailure,
  RetryInfo,
} from '../gen/google/rpc/error_details.pb.ts';
import { Status } from '../gen/google/rpc/status.pb.ts';

const DOMAIN = 'tabern';
const DETAILS_KEY = 'grpc-status-details-bin';
const TYPE_URL = 'type.googleapis.com/';

/** Retry advice: `yes` after `retryAfterS`, `no` never, `client` by the client's own rules. */
type Row = { code: Code; http: number; retry: 'yes' | 'no' | 'client'; retryAfterS?: number };

/** Reason -> gRPC code and HTTP status. A new row needs a row in the README of this folder. */
export const REASONS = {
  API_KEY_MISSING: { code: Code.UNAUTHENTICATED, http: 401, retry: 'no' },
  API_KEY_INVALID: { code: Code.UNAUTHENTICATED, http: 401, retry: 'no' },
  SIGNING_KEY_INVALID: { code: Code.UNAUTHENTICATED, http: 401, retry: 'no' },
  PROJECT_MISMATCH: { code: Code.PERMISSION_DENIED, http: 403, retry: 'no' },
  FEATURE_DISABLED: { code: Code.PERMISSION_DENIED, http: 403, retry: 'no' },
  TOKEN_REQUIRED: { code: Code.PERMISSION_DENIED, http: 403, retry: 'no' },
  CROSS_ORIGIN: { code: Code.PERMISSION_DENIED, http: 403, retry: 'no' },
  ADDRESS_REFUSED: { code: Code.PERMISSION_DENIED, http: 403, retry: 'no' },
  URL_SIGNATURE_INVALID: { code: Code.PERMISSION_DENIED, http: 403, retry: 'no' },
  MALFORMED_JSON: { code: Code.INVALID_ARGUMENT, http: 400, retry: 'no' },
  MALFORMED_REQUEST: { code: Code.INVALID_ARGUMENT, http: 400, retry: 'no' },
  INVALID_FIELD: { code: Code.INVALID_ARGUMENT, http: 400, retry: 'no' },
  INVALID_CURSOR: { code: Code.INVALID_ARGUMENT, http: 400, retry: 'no' },
  REGION_UNSUPPORTED: { code: Code.INVALID_ARGUMENT, http: 400, retry: 'no' },
  ENDPOINT_NOT_ALLOWED: { code: Code.INVALID_ARGUMENT, http: 400, retry: 'no' },
  UNKNOWN_EVENT_TYPE: { code: Code.INVALID_ARGUMENT, http: 400, retry: 'no' },
  RESOURCE_NOT_FOUND: { code: Code.NOT_FOUND, http: 404, retry: 'no' },
  ROUTE_NOT_FOUND: { code: Code.UNIMPLEMENTED, http: 404, retry: 'no' },
  METHOD_NOT_ALLOWED: { code: Code.UNIMPLEMENTED, http: 405, retry: 'no' },
  UPGRADE_REQUIRED: { code: Code.UNIMPLEMENTED, http: 426, retry: 'no' },
  NOT_IMPLEMENTED: { code: Code.UNIMPLEMENTED, http: 501, retry: 'no' },
  UNSUPPORTED_MEDIA_TYPE: { code: Code.INVALID_ARGUMENT, http: 415, retry: 'no' },
  CONTEXT_NAME_TAKEN: { code: Code.ALREADY_EXISTS, http: 409, retry: 'no' },
  LABEL_NAME_TAKEN: { code: Code.ALREADY_EXISTS, http: 409, retry: 'no' },
  SECRET_NAME_TAKEN: { code: Code.ALREADY_EXISTS, http: 409, retry: 'no' },
  PROJECT_NAME_TAKEN: { code: Code.ALREADY_EXISTS, http: 409, retry: 'no' },
  ENDPOINT_EXISTS: { code: Code.ALREADY_EXISTS, http: 409, retry: 'no' },
  DELIVERY_NOT_ENDED: { code: Code.FAILED_PRECONDITION, http: 409, retry: 'no' },
  SESSION_PENDING: { code: Code.FAILED_PRECONDITION, http: 409, retry: 'yes', retryAfterS: 1 },
  SESSION_NOT_ENDED: { code: Code.FAILED_PRECONDITION, http: 409, retry: 'no' },
  FUNCTION_IN_USE: { code: Code.FAILED_PRECONDITION, http: 409, retry: 'no' },
  SESSION_OF_INVOCATION: { code: Code.FAILED_PRECONDITION, http: 409, retry: 'no' },
  HANDOFF_PENDING: { code: Code.FAILED_PRECONDITION, http: 409, retry: 'no' },
  TOO_MANY_HANDOFFS: { code: Code.FAILED_PRECONDITION, http: 409, retry: 'no' },
  LAST_API_KEY: { code: Code.FAILED_PRECONDITION, http: 409, retry: 'no' },
  TOO_MANY_API_KEYS: { code: Code.FAILED_PRECONDITION, http: 409, retry: 'no' },
  TOO_MANY_SECRETS: { code: Code.FAILED_PRECONDITION, http: 409, retry: 'no' },
  TOO_MANY_EXTENSIONS: { code: Code.RESOURCE_EXHAUSTED, http: 429, retry: 'yes', retryAfterS: 5 },
  TOO_MANY_CERTIFICATES: { code: Code.FAILED_PRECONDITION, http: 409, retry: 'no' },
  TOO_MANY_LABELS: { code: Code.FAILED_PRECONDITION, http: 409, retry: 'no' },
  TOO_MANY_SCHEDULES: { code: Code.FAILED_PRECONDITION, http: 409, retry: 'no' },
  TOO_MANY_WEBHOOKS: { code: Code.FAILED_PRECONDITION, http: 409, retry: 'no' },
  QUOTA_EXCEEDED: { code: Code.FAILED_PRECONDITION, http: 409, retry: 'no' },
  LEASE_LOST: { code: Code.ABORTED, http: 409, retry: 'no' },
  SESSION_ENDED: { code: Code.FAILED_PRECONDITION, http: 410, retry: 'no' },
  RECORDING_EXPIRED: { code: Code.NOT_FOUND, http: 410, retry: 'no' },
  URL_EXPIRED: { code: Code.NOT_FOUND, http: 410, retry: 'no' },
  BODY_TOO_LARGE: { code: Code.RESOURCE_EXHAUSTED, http: 413, retry: 'no' },
  URI_TOO_LONG: { code: Code.INVALID_ARGUMENT, http: 414, retry: 'no' },
  HEADERS_TOO_LARGE: { code: Code.RESOURCE_EXHAUSTED, http: 431, retry: 'no' },
  IDEMPOTENCY_MISMATCH: { code: Code.ABORTED, http: 422, retry: 'no' },
  RECORDING_DISABLED: { code: Code.FAILED_PRECONDITION, http: 422, retry: 'no' },
  BUILD_FAILED: { code: Code.FAILED_PRECONDITION, http: 422, retry: 'no' },
  ARCHIVE_INVALID: { code: Code.INVALID_ARGUMENT, http: 422, retry: 'no' },
  CONCURRENCY_LIMIT: { code: Code.RESOURCE_EXHAUSTED, http: 429, retry: 'yes', retryAfterS: 5 },
  RATE_LIMIT: { code: Code.RESOURCE_EXHAUSTED, http: 429, retry: 'yes', retryAfterS: 5 },
  QUEUE_FULL: { code: Code.RESOURCE_EXHAUSTED, http: 429, retry: 'yes', retryAfterS: 10 },
  REQUEST_TIMEOUT: { code: Code.DEADLINE_EXCEEDED, http: 408, retry: 'client' },
  CANCELLED: { code: Code.CANCELLED, http: 499, retry: 'client' },
  OUTCOME_UNKNOWN: { code: Code.UNKNOWN, http: 500, retry: 'no' },
  INTERNAL: { code: Code.INTERNAL, http: 500, retry: 'client' },
  DATA_CORRUPT: { code: Code.DATA_LOSS, http: 500, retry: 'no' },
  PAGE_UNREACHABLE: { code: Code.UNAVAILABLE, http: 502, retry: 'no' },
  SEARCH_FAILED: { code: Code.UNAVAILABLE, http: 502, retry: 'yes', retryAfterS: 5 },
  PAGE_TOO_LARGE: { code: Code.RESOURCE_EXHAUSTED, http: 502, retry: 'no' },
  BROWSER_FAILED: { code: Code.UNAVAILABLE, http: 502, retry: 'yes', retryAfterS: 1 },
  RECORDING_STORE: { code: Code.UNAVAILABLE, http: 502, retry: 'yes', retryAfterS: 1 },
  CORE_UNAVAILABLE: { code: Code.UNAVAILABLE, http: 503, retry: 'yes', retryAfterS: 1 },
  KEYS_NOT_READY: { code: Code.UNAVAILABLE, http: 503, retry: 'yes', retryAfterS: 1 },
  STORAGE_FULL: { code: Code.UNAVAILABLE, http: 503, retry: 'yes', retryAfterS: 30 },
  DRAINING: { code: Code.UNAVAILABLE, http: 503, retry: 'yes', retryAfterS: 1 },
  NO_RUNNER: { code: Code.UNAVAILABLE, http: 503, retry: 'yes', retryAfterS: 5 },
  PAGE_TIMEOUT: { code: Code.DEADLINE_EXCEEDED, http: 504, retry: 'no' },
  DEADLINE: { code: Code.DEADLINE_EXCEEDED, http: 504, retry: 'client' },
} as const satisfies Record<string, Row>;

export type Reason = keyof typeof REASONS;
export type Facts = Readonly<Record<string, string | number | boolean>>;

const UNEXPECTED = ['INTERNAL', 'An unexpected error occurred.'] as const;

/**
 * Messages for a peer that sends a code without a reason. The transport's own messages would reveal
 * paths and addresses.
 */
const FAULT_OF_CODE: Partial<Record<Code, readonly [Reason, string]>> = {
  [Code.CANCELLED]: ['CANCELLED', 'The caller left.'],
  [Code.INVALID_ARGUMENT]: ['INVALID_FIELD', 'The request is not valid.'],
  [Code.DEADLINE_EXCEEDED]: ['DEADLINE', 'The request took too long.'],
  [Code.NOT_FOUND]: ['RESOURCE_NOT_FOUND', 'Not found.'],
  [Code.RESOURCE_EXHAUSTED]: ['BODY_TOO_LARGE', 'The message is too large.'],
  [Code.UNIMPLEMENTED]: ['NOT_IMPLEMENTED', 'This operation is not available yet.'],
  [Code.UNAVAILABLE]: ['CORE_UNAVAILABLE', 'The service is not reachable. Try again.'],
  [Code.UNAUTHENTICATED]: ['API_KEY_INVALID', 'Invalid API key.'],
};

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

/** The Fault in grpc-js's format. */
export function toServiceError(fault: Fault): Partial<ServiceError> {
  const { code, retry, retryAfterS } = fault.row;
  const facts = Object.entries(fault.facts).map(([name, value]) => [name, String(value)]);
  const details = [
    packed(
      'google.rpc.ErrorInfo',
      ErrorInfo.encode({
        reason: fault.reason,
        domain: DOMAIN,
        metadata: Object.fromEntries(facts),
      }).finish(),
    ),
  ];
  const field = fault.facts['field'];
  if (typeof field === 'string') {
    const fieldViolations = [{ field, description: fault.message }];
    details.push(packed('google.rpc.BadRequest', BadRequest.encode({ fieldViolations }).finish()));
  }
  if (fault.facts['limit'] !== undefined) {
    const violations = [{ subject: 'project', description: fault.message }];
    details.push(packed('google.rpc.QuotaFailure', QuotaFailure.encode({ violations }).finish()));
  }
  if (retry === 'yes') {
    const waitS = Number(fault.facts['retryAfterS'] ?? retryAfterS ?? 1);
    const retryDelay = { seconds: BigInt(Math.ceil(waitS)), nanos: 0 };
    details.push(packed('google.rpc.RetryInfo', RetryInfo.encode({ retryDelay }).finish()));
  }
  const metadata = new Metadata();
  const bytes = Status.encode({ code, message: fault.message, details }).finish();
  metadata.set(DETAILS_KEY, Buffer.from(bytes));
  return { code, details: fault.message, metadata };
}

/** Restores a Fault that a peer sent. */
export function fromServiceError(error: ServiceError): Fault {
  const bytes = error.metadata?.get(DETAILS_KEY)[0];
  if (Buffer.isBuffer(bytes)) {
    const detail = Status.decode(bytes).details.find(
      (one) => one.typeUrl === `${TYPE_URL}google.rpc.ErrorInfo`,
    );
    const info = detail && ErrorInfo.decode(detail.value);
    if (info?.domain === DOMAIN && Object.hasOwn(REASONS, info.reason)) {
      return new Fault(info.reason as Reason, error.details, info.metadata);
    }
  }
  const [reason, message] = FAULT_OF_CODE[error.code] ?? UNEXPECTED;
  return new Fault(reason, message, {}, error);
}

function packed(type: string, value: Uint8Array) {
  return { typeUrl: TYPE_URL + type, value: Buffer.from(value) };
}
