/**
 * Idempotency keys: a client that did not hear an answer asks again with the same key, and gets
 * what its first request made. Kept in the operation that accepts;
 * core/maintenance/retention-table.ts removes old ones.
 */
import { createHash } from 'node:crypto';
import { invalidField } from '../../proto/rpc/errors.ts';
import type { IdempotencyKey } from '../store/types/invocations.ts';

/** Source: proto/spec/functions.md 8. */
export const KEY_KEPT_MS = 24 * 3_600_000;
/** Ours: room for a quoted UUID and for names, and nothing that a log could not show. */
const KEY = /^[\x20-\x7e]{1,255}$/;

/** Undefined when the client gave none. The request is what it asked for, as JSON. */
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

/** JSON with members in order: a map that a gRPC client sends has none. */
function canonical(request: object): string {
  return JSON.stringify(request, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}
