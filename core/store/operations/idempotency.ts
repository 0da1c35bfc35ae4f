/**
 * Rules of idempotency keys, above the SQL: a key and the invocation that it made are written in
 * one transaction, so that a crash leaves both or neither. An expired key is treated as a new key.
 */
import { must } from '../../../proto/common/must.ts';
import type { IdempotencyKey, InvocationRow } from '../types/invocations.ts';
import type { Read, Steps } from './steps.ts';
import { keyMismatch } from './texts.ts';

export type KeyStatements = {
  /** Undefined when it has expired. */
  find(wanted: {
    projectId: string;
    key: string;
    at: number;
  }): Read<{ requestHash: Uint8Array; invocationId: string } | undefined>;
  /** Replaces an expired one. */
  insert(
    made: IdempotencyKey & { projectId: string; invocationId: string; expiresAt: number },
  ): void;
};

type Owned = { id: string; projectId: string };

/** The invocation that the key made. Throws IDEMPOTENCY_MISMATCH. */
export function* findIdempotent(
  keys: KeyStatements,
  invocations: { read(wanted: Owned): Read<InvocationRow | undefined> },
  wanted: IdempotencyKey & { projectId: string; at: number },
): Steps<InvocationRow | undefined> {
  const { projectId, key, requestHash, at } = wanted;
  const found = yield* keys.find({ projectId, key, at });
  if (!found) return undefined;
  if (Buffer.compare(found.requestHash, requestHash) !== 0) throw keyMismatch();
  const id = found.invocationId;
  return must(yield* invocations.read({ id, projectId }), 'invocation of a key');
}
