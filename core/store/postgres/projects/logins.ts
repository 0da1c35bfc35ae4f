/** Logins of the console in PostgreSQL. */
import type { LoginOps } from '../../types/logins.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

export function loginOps(tx: Tx): InReads<LoginOps> {
  const { row, write, done } = statements(tx);
  // Index console_logins_by_expiry.
  const expire = write<[object]>('DELETE FROM console_logins WHERE expires_at <= @at');
  const insert = write<[object]>(`
    INSERT INTO console_logins (hash, project_id, operator_hash, key_id, created_at, expires_at)
    VALUES (@hash, @projectId, @operatorHash, @keyId, @at, @expiresAt)`);
  // Index console_logins_by_project.
  const trim = done<[object]>(`
    DELETE FROM console_logins WHERE hash IN (
      SELECT hash FROM console_logins WHERE project_id IS NOT DISTINCT FROM @projectId
      ORDER BY created_at DESC, number DESC OFFSET @max)`);
  return {
    *addConsoleLogin(wanted) {
      expire(wanted);
      insert(wanted);
      yield* trim(wanted);
    },
    findConsoleLogin: row(`
      SELECT logins.project_id AS "projectId", projects.name AS "projectName",
        logins.key_id AS "keyId", logins.expires_at AS "expiresAt"
      FROM console_logins AS logins
      LEFT JOIN projects ON projects.id = logins.project_id
      LEFT JOIN api_keys ON api_keys.public_id = logins.key_id
      WHERE logins.hash = @hash AND logins.expires_at > @at
        AND (logins.operator_hash IS NULL OR logins.operator_hash = @operatorHash)
        AND (logins.key_id IS NULL
          OR (api_keys.project_id = logins.project_id AND api_keys.revoked_at IS NULL))`),
    extendConsoleLogin: done(
      'UPDATE console_logins SET expires_at = GREATEST(expires_at, @expiresAt) WHERE hash = @hash',
    ),
    removeConsoleLogin: done('DELETE FROM console_logins WHERE hash = ?'),
  };
}
