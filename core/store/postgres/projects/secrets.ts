/** Secrets of functions in PostgreSQL. Their rules: core/store/operations/secrets.ts. */
import type { SecretStatements } from '../../operations/secrets.ts';
import type { SecretKeyPair, SecretOps, SecretRow } from '../../types/functions.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

/** After every UUID, in the order of text. */
const LAST_ID = '~';
const COLUMNS = `secrets.id AS id, secrets.project_id AS "projectId",
  secrets.secret_key AS "secretKey", secrets.created_at AS "createdAt",
  secrets.updated_at AS "updatedAt"`;
const KEY_PAIR = `SELECT id, project_id AS "projectId", public_key AS "publicKey",
  private_key AS "privateKey" FROM secret_key_pairs WHERE project_id = ?`;
const SECRET = `SELECT ${COLUMNS} FROM secrets WHERE id = @id AND project_id = @projectId`;
const IN_PAGE = `secrets.project_id = @projectId AND secrets.id < @before
  AND (@startAt::BIGINT IS NULL OR secrets.created_at >= @startAt)
  AND (@endAt::BIGINT IS NULL OR secrets.created_at <= @endAt)
  ORDER BY secrets.id DESC LIMIT @limit`;

export function secretViews(
  tx: Tx,
): InReads<
  Pick<
    SecretOps,
    'getSecretKeyPair' | 'getSecret' | 'listSecrets' | 'listFunctionSecrets' | 'sealedSecretsOf'
  >
> {
  const { row, rows } = statements(tx);
  // Index secrets_by_project; ids are UUID v7, so newest id = newest secret.
  const page = rows<[object], SecretRow>(`SELECT ${COLUMNS} FROM secrets WHERE ${IN_PAGE}`);
  // The primary key of function_secrets: few secrets are attached to a function.
  const attached = rows<[object], SecretRow>(`
    SELECT ${COLUMNS}
    FROM function_secrets JOIN secrets ON secrets.id = function_secrets.secret_id
    WHERE function_secrets.function_id = @functionId AND ${IN_PAGE}`);
  return {
    getSecretKeyPair: row(KEY_PAIR),
    getSecret: row(SECRET),
    listSecrets: (wanted) => page({ ...wanted, before: wanted.before ?? LAST_ID }),
    listFunctionSecrets: (wanted) => attached({ ...wanted, before: wanted.before ?? LAST_ID }),
    sealedSecretsOf: rows(`
      SELECT secrets.id AS id, secrets.secret_key AS "secretKey", secrets.updated_at AS "updatedAt",
        secrets.sealed AS sealed, pairs.id AS "keyPairId", pairs.private_key AS "privateKey"
      FROM function_secrets JOIN secrets ON secrets.id = function_secrets.secret_id
      LEFT JOIN secret_key_pairs AS pairs ON pairs.id = secrets.key_pair_id
        AND pairs.project_id = secrets.project_id
      WHERE function_secrets.function_id = @functionId AND secrets.project_id = @projectId
      ORDER BY secrets.secret_key`),
  };
}

export function secretStatements(tx: Tx): SecretStatements {
  const { row, exists, number, returned, changed, write } = statements(tx);
  return {
    keyPair: row<[string], SecretKeyPair>(KEY_PAIR),
    insertKeyPair: write(`
      INSERT INTO secret_key_pairs (id, project_id, public_key, private_key, created_at)
      VALUES (@id, @projectId, @publicKey, @privateKey, @at)`),
    read: row(SECRET),
    // Index secrets_by_name.
    isNamed: exists('SELECT 1 FROM secrets WHERE project_id = ? AND secret_key = ?'),
    countOf: number('SELECT COUNT(*) FROM secrets WHERE project_id = ?'),
    // the length of a value is read without it
    bytesBeside: number(`
      SELECT COALESCE(SUM(LENGTH(sealed)), 0)::BIGINT FROM secrets
      WHERE project_id = @projectId AND id <> @id`),
    insert: returned(`
      INSERT INTO secrets (id, project_id, secret_key, key_pair_id, sealed, created_at, updated_at)
      VALUES (@id, @projectId, @secretKey, @keyPairId, @sealed, @at, @at)
      RETURNING ${COLUMNS}`),
    setValue: write(`
      UPDATE secrets SET sealed = @sealed, key_pair_id = @keyPairId, updated_at = @at
      WHERE id = @id AND project_id = @projectId`),
    remove: changed('DELETE FROM secrets WHERE id = @id AND project_id = @projectId'),
    isFunction: exists(`
      SELECT 1 FROM functions
      WHERE id = @id AND project_id = @projectId AND deleted_at IS NULL`),
    isAttached: exists(`
      SELECT 1 FROM function_secrets WHERE function_id = @functionId AND secret_id = @secretId`),
    countAttached: number('SELECT COUNT(*) FROM function_secrets WHERE function_id = ?'),
    attach: write(`
      INSERT INTO function_secrets (function_id, secret_id) VALUES (@functionId, @secretId)`),
    detach: write(`
      DELETE FROM function_secrets WHERE function_id = @functionId AND secret_id = @secretId`),
    // Index function_secrets_by_secret.
    detachAll: write('DELETE FROM function_secrets WHERE secret_id = ?'),
  };
}
