/** Idempotency keys in PostgreSQL. */
import type { KeyStatements } from '../../operations/invocations.ts';
import type { IdempotencyOps } from '../../types/invocations.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { deleteSome } from '../maintenance/some.ts';

export function keyStatements(tx: Tx): KeyStatements {
  const { row, write } = statements(tx);
  return {
    find: row(`
      SELECT request_hash AS "requestHash", invocation_id AS "invocationId" FROM idempotency_keys
      JOIN invocations ON invocations.id = invocation_id
      JOIN functions ON functions.id = invocations.function_id
      WHERE idempotency_keys.project_id = @projectId AND key = @key
        AND idempotency_keys.expires_at > @at AND functions.deleted_at IS NULL`),
    insert: write(`
      INSERT INTO idempotency_keys (project_id, key, request_hash, invocation_id, expires_at)
      VALUES (@projectId, @key, @requestHash, @invocationId, @expiresAt)
      ON CONFLICT (project_id, key) DO UPDATE SET request_hash = @requestHash,
        invocation_id = @invocationId, expires_at = @expiresAt`),
  };
}

export function keyRetention(tx: Tx): InReads<Pick<IdempotencyOps, 'purgeIdempotencyKeys'>> {
  return {
    // Index idempotency_keys_by_expiry.
    purgeIdempotencyKeys: statements(tx).changes(
      deleteSome('idempotency_keys', 'idempotency_keys WHERE expires_at <= @at LIMIT @max'),
    ),
  };
}
