/**
 * What a call over gRPC is told when the line broke and the peer said nothing of its own. Whether
 * the peer had begun is not known: what changes something must not be repeated blindly, so its
 * outcome is unknown; what never left, or may be repeated, is only not reachable. Pure.
 */
import { status as Code, type ServiceError } from '@grpc/grpc-js';
import { Fault, fromServiceError } from './errors.ts';

/**
 * RPCs that may be repeated: they read, or a second time changes nothing more. An upload that is
 * repeated is another one, and core removes what no build names. Any other RPC may not.
 */
const REPEATABLE =
  /\/(Get|List|Read|Register|Lease|Renew|Append|Complete|Claim|Report|WriteBlob)[^/]*$/;
/** How grpc-js says that a request was not sent. */
const NEVER_SENT = /^(No connection established|Name resolution failed|Channel closed before)/;
const LINE_CODES: readonly Code[] = [Code.UNAVAILABLE, Code.INTERNAL, Code.UNKNOWN, Code.CANCELLED];

/** The error of a call to `path` as a Fault. `hasLeft`: the caller itself ended it. */
export function brokenCall(error: ServiceError, path: string, hasLeft: boolean): Fault {
  const fault = fromServiceError(error);
  const isPeers = fault.cause !== error;
  if (isPeers || hasLeft || !LINE_CODES.includes(error.code)) return fault;
  if (REPEATABLE.test(path) || NEVER_SENT.test(error.details)) {
    return new Fault('CORE_UNAVAILABLE', 'The service is not reachable. Try again.', {}, error);
  }
  return unknownOutcome(error);
}

/** Something may or may not have been done. What knows of an idempotency key says more. */
export function unknownOutcome(cause?: unknown): Fault {
  const message = 'The outcome is unknown; read the object before trying again.';
  return new Fault('OUTCOME_UNKNOWN', message, {}, cause);
}
