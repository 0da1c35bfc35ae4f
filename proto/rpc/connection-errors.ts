/**
 * Maps a broken gRPC connection to a Fault. Whether the peer had started the call is unknown: for
 * RPCs with side effects the outcome is unknown and a retry is unsafe; requests that were not sent,
 * and idempotent RPCs, are reported as unreachable. Pure.
 */
import { status as Code, type ServiceError } from '@grpc/grpc-js';
import { Fault } from './errors.ts';
import { fromServiceError } from './service-errors.ts';

/**
 * Idempotent RPCs: reads, and writes whose repetition changes nothing. A repeated upload is a new
 * blob, and core removes unreferenced ones. All other RPCs must not be repeated.
 */
const REPEATABLE =
  /\/(Get|List|Read|Register|Lease|Renew|Append|Complete|Claim|Report|WriteBlob)[^/]*$/;
/** grpc-js's message for a request that was not sent. */
const NEVER_SENT = /^(No connection established|Name resolution failed|Channel closed before)/;
const LINE_CODES: readonly Code[] = [Code.UNAVAILABLE, Code.INTERNAL, Code.UNKNOWN, Code.CANCELLED];

/** The error of a call to `path` as a Fault. `hasLeft`: the caller cancelled it. */
export function brokenCall(error: ServiceError, path: string, hasLeft: boolean): Fault {
  const fault = fromServiceError(error);
  const isPeers = fault.cause !== error;
  if (isPeers || hasLeft || !LINE_CODES.includes(error.code)) return fault;
  if (REPEATABLE.test(path) || NEVER_SENT.test(error.details)) {
    return new Fault('CORE_UNAVAILABLE', 'The service is not reachable. Try again.', {}, error);
  }
  return unknownOutcome(error);
}

/** The call may or may not have been executed. Callers with an idempotency key add advice. */
export function unknownOutcome(cause?: unknown): Fault {
  const message = 'The outcome is unknown; read the object before trying again.';
  return new Fault('OUTCOME_UNKNOWN', message, {}, cause);
}
