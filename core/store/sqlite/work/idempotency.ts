/**
 * Idempotency keys in SQLite: a key and the invocation that it made are written in one operation,
 * so that a crash leaves both or none. A key that has expired counts as new before it is purged.
 */

import { must } from '../../../../proto/common/must.ts';
import { Fault } from '../../../../proto/rpc/errors.ts';
import type { IdempotencyKey, IdempotencyOps, InvocationRow } from '../../types/invocations.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';
import { invocationReader } from './invocation-rows.ts';

type Wanted = IdempotencyKey & { projectId: string; at: number };
type KeyRow = { requestHash: Uint8Array; invocationId: string };

export function idempotencyOps(tx: Tx): IdempotencyOps {
  const keys = idempotencyKeys(tx);
  // Index idempotency_keys_by_expiry.
  const purge = tx.db.prepare<[object]>(`
    DELETE FROM idempotency_keys WHERE (project_id, key) IN (
      SELECT project_id, key FROM idempotency_keys WHERE expires_at <= @at LIMIT @max)`);
  return {
    findIdempotent: (wanted) => keys.find(wanted),
    purgeIdempotencyKeys: (wanted) => purge.run(wanted).changes,
  };
}

/** What happens to a key inside a larger operation. */
export type IdempotencyKeys = {
  /** Throws IDEMPOTENCY_MISMATCH. */
  find(wanted: Wanted): InvocationRow | undefined;
  keep(made: Wanted & { invocationId: string; expiresAt: number }): void;
};

export const idempotencyKeys = preparedOnce((tx: Tx): IdempotencyKeys => {
  const { db } = tx;
  const invocation = invocationReader(tx);
  const byKey = db.prepare<[object], KeyRow>(`
    SELECT request_hash AS requestHash, invocation_id AS invocationId FROM idempotency_keys
    WHERE project_id = @projectId AND key = @key AND expires_at > @at`);
  const keep = db.prepare<[object]>(`
    INSERT OR REPLACE INTO idempotency_keys
      (project_id, key, request_hash, invocation_id, expires_at)
    VALUES (@projectId, @key, @requestHash, @invocationId, @expiresAt)`);
  return {
    find({ projectId, key, requestHash, at }) {
      const found = byKey.get({ projectId, key, at });
      if (!found) return undefined;
      if (Buffer.compare(found.requestHash, requestHash) !== 0) {
        const message = 'This idempotency key was used for another request.';
        throw new Fault('IDEMPOTENCY_MISMATCH', message);
      }
      const id = found.invocationId;
      return must(invocation({ id, projectId }), 'invocation of a key');
    },
    keep: (made) => void keep.run(made),
  };
});
