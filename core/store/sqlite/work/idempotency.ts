/** Idempotency keys in SQLite. */
import type { KeyStatements } from '../../operations/invocations.ts';
import type { IdempotencyOps } from '../../types/invocations.ts';
import { queries, statements } from '../engine/statements.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';

export const keyStatements = preparedOnce((tx: Tx): KeyStatements => {
  const { row, write } = statements(tx);
  return {
    find: row(`
      SELECT request_hash AS requestHash, invocation_id AS invocationId FROM idempotency_keys
      JOIN invocations ON invocations.id = invocation_id
      JOIN functions ON functions.id = invocations.function_id
      WHERE idempotency_keys.project_id = @projectId AND key = @key
        AND idempotency_keys.expires_at > @at AND functions.deleted_at IS NULL`),
    insert: write(`
      INSERT OR REPLACE INTO idempotency_keys
        (project_id, key, request_hash, invocation_id, expires_at)
      VALUES (@projectId, @key, @requestHash, @invocationId, @expiresAt)`),
  };
});

export function keyRetention(tx: Tx): Pick<IdempotencyOps, 'purgeIdempotencyKeys'> {
  return {
    // Index idempotency_keys_by_expiry.
    purgeIdempotencyKeys: queries(tx).changes(`
      DELETE FROM idempotency_keys WHERE (project_id, key) IN (
        SELECT project_id, key FROM idempotency_keys WHERE expires_at <= @at LIMIT @max)`),
  };
}
