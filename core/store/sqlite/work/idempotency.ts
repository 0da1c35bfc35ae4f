/** Idempotency keys in SQLite. */
import type { KeyStatements } from '../../operations/idempotency.ts';
import type { IdempotencyOps } from '../../types/invocations.ts';
import { found } from '../engine/steps.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';

type KeyRow = { requestHash: Uint8Array; invocationId: string };

export const keyStatements = preparedOnce(({ db }: Tx): KeyStatements => {
  const find = db.prepare<[object], KeyRow>(`
    SELECT request_hash AS requestHash, invocation_id AS invocationId FROM idempotency_keys
    WHERE project_id = @projectId AND key = @key AND expires_at > @at`);
  const insert = db.prepare<[object]>(`
    INSERT OR REPLACE INTO idempotency_keys
      (project_id, key, request_hash, invocation_id, expires_at)
    VALUES (@projectId, @key, @requestHash, @invocationId, @expiresAt)`);
  return {
    find: (wanted) => found(find.get(wanted)),
    insert: (made) => void insert.run(made),
  };
});

export function keyRetention({ db }: Tx): Pick<IdempotencyOps, 'purgeIdempotencyKeys'> {
  // Index idempotency_keys_by_expiry.
  const purge = db.prepare<[object]>(`
    DELETE FROM idempotency_keys WHERE (project_id, key) IN (
      SELECT project_id, key FROM idempotency_keys WHERE expires_at <= @at LIMIT @max)`);
  return { purgeIdempotencyKeys: (wanted) => purge.run(wanted).changes };
}
