/** API keys of one project in PostgreSQL. Their rules: core/store/operations/projects.ts. */
import type { KeyStatements } from '../../operations/projects.ts';
import type { KeyOps, ProjectKeyRow } from '../../types/projects.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

const COLUMNS = `public_id AS id, name, api_keys.created_at AS "createdAt",
  last_used_at AS "lastUsedAt", revoked_at AS "revokedAt", made_by AS "madeBy"`;

export function keyStatements(tx: Tx): KeyStatements {
  const { number, row, write } = statements(tx);
  return {
    // Index api_keys_by_project; the limits below bound its rows.
    countValid: number('SELECT COUNT(*) FROM api_keys WHERE project_id = ? AND revoked_at IS NULL'),
    countRecent: number(`
      SELECT COUNT(*) FROM api_keys
      WHERE project_id = @projectId AND (revoked_at IS NULL OR revoked_at >= @since)`),
    insert: write(`
      INSERT INTO api_keys (hash, project_id, public_id, name, made_by, created_at)
      VALUES (@hash, @projectId, @publicId, @name, @madeBy, @at)`),
    trim: write(`
      DELETE FROM api_keys WHERE hash IN (
        SELECT hash FROM api_keys
        WHERE project_id = @projectId AND made_by IS NOT NULL AND revoked_at < @since
        ORDER BY revoked_at DESC, number DESC OFFSET @keptMax)`),
    find: row(`
      SELECT (revoked_at IS NULL)::INT AS "isValid" FROM api_keys
      WHERE public_id = @id AND project_id = @projectId`),
    revoke: write(`
      UPDATE api_keys SET revoked_at = @at WHERE public_id = @id AND revoked_at IS NULL`),
  };
}

export function keyOps(tx: Tx): InReads<Pick<KeyOps, 'listProjectKeys'>> {
  const { rows } = statements(tx);
  type Row = Omit<ProjectKeyRow, 'logins'>;
  const valid = rows<[object], Row>(`
    SELECT ${COLUMNS} FROM api_keys
    WHERE project_id = @projectId AND revoked_at IS NULL ORDER BY created_at DESC, number DESC`);
  const revoked = rows<[object], Row>(`
    SELECT ${COLUMNS} FROM api_keys
    WHERE project_id = @projectId AND revoked_at IS NOT NULL
    ORDER BY revoked_at DESC, number DESC LIMIT @revokedMax`);
  // Index console_logins_by_project; a project has at most 1,000.
  const logins = rows<[object], { id: string; count: number }>(`
    SELECT key_id AS id, COUNT(*) AS count FROM console_logins
    WHERE project_id = @projectId AND key_id IS NOT NULL AND expires_at > @at GROUP BY key_id`);
  return {
    *listProjectKeys(wanted) {
      const [open, ended] = [valid(wanted), revoked(wanted)];
      const counts = new Map((yield* logins(wanted)).map(({ id, count }) => [id, count]));
      const isOpen = ({ revokedAt }: Row) => revokedAt === null;
      return [...(yield* open), ...(yield* ended)].map((row) => {
        return { ...row, logins: isOpen(row) ? (counts.get(row.id) ?? 0) : 0 };
      });
    },
  };
}
