/**
 * A Fault in gRPC's format: google.rpc.Status with one ErrorInfo{reason, domain, metadata} in
 * grpc-status-details-bin, so that any gRPC client reads it with its standard library.
 */
import { status as Code, Metadata, type ServiceError } from '@grpc/grpc-js';
import {
  BadRequest,
  ErrorInfo,
  QuotaFailure,
  RetryInfo,
} from '../gen/google/rpc/error_details.pb.ts';
import { Status } from '../gen/google/rpc/status.pb.ts';
import { Fault, REASONS, type Reason, UNEXPECTED } from './errors.ts';

const DOMAIN = 'tabern';
const DETAILS_KEY = 'grpc-status-details-bin';
const TYPE_URL = 'type.googleapis.com/';

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

/** The Fault in grpc-js's format. */
export function toServiceError(fault: Fault): Pick<ServiceError, 'code' | 'details' | 'metadata'> {
  const { code: name, retry, retryAfterS } = fault.row;
  const code = Code[name];
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
