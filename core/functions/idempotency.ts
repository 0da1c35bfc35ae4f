/**
 * Idempotency keys: a client that received no answer repeats the request with the same key and
 * receives the result of the first one. Stored in the operation that accepts;
 * core/maintenance/retention-table.ts removes old ones.
 */
import { createHash } from 'node:crypto';
import { invalidField } from '../../proto/rpc/errors.ts';
import type { IdempotencyKey } from '../store/types/invocations.ts';

/** Source: proto/spec/functions.md 8. */
export const KEY_KEPT_MS = 24 * 3_600_000;
/** Ours: enough for a quoted UUID and for names, and printable in logs. */
const KEY = /^[\x20-\x7e]{1,255}$/;

/** Undefined without a key. The request is its content as JSON. */
export function idempotencyKey(
  key: string | undefined,
  request: object,
): IdempotencyKey | undefined {
  if (key === undefined) return undefined;
  if (!KEY.test(key)) {
    throw invalidField('Idempotency-Key', 'must be 1 to 255 printable ASCII characters.');
  }
  return { key, requestHash: createHash('sha256').update(canonical(request)).digest() };
}

/** JSON with sorted members: a map of a gRPC client has no order. */
function canonical(request: object): string {
  return JSON.stringify(request, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}
