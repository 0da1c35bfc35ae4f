/**
 * Secrets of functions. An attachment belongs to a function and a secret of one project, and is
 * removed in the operation that deletes either of them.
 */
import { must } from '../../../proto/common/must.ts';
import type {
  NewSecret,
  SecretKeyPair,
  SecretOps,
  SecretRow,
  SecretsMax,
} from '../types/functions.ts';
import type { Owned } from '../types/rows.ts';
import type { InSteps, Read, Steps, Transaction } from './steps.ts';

type Attachment = { functionId: string; secretId: string };

export type SecretStatements = {
  /** The project's pair. */
  keyPair(projectId: string): Read<SecretKeyPair | undefined>;
  insertKeyPair(pair: SecretKeyPair & { at: number }): void;
  read(wanted: Owned): Read<SecretRow | undefined>;
  isNamed(projectId: string, secretKey: string): Read<boolean>;
  countOf(projectId: string): Read<number>;
  /** Bytes of the project's sealed values, without that one. */
  bytesBeside(wanted: Owned): Read<number>;
  insert(secret: NewSecret): Read<SecretRow>;
  setValue(change: Omit<NewSecret, 'secretKey'>): void;
  /** False when there is no such secret. */
  remove(wanted: Owned): Read<boolean>;
  /** Whether the project has the function, and it is not deleted. */
  isFunction(wanted: Owned): Read<boolean>;
  isAttached(wanted: Attachment): Read<boolean>;
  countAttached(functionId: string): Read<number>;
  attach(wanted: Attachment): void;
  detach(wanted: Attachment): void;
  detachAll(secretId: string): void;
};

type Names = Exclude<
  keyof SecretOps,
  'getSecretKeyPair' | 'getSecret' | 'listSecrets' | 'listFunctionSecrets' | 'sealedSecretsOf'
>;

export function secretOperations(
  sql: SecretStatements,
  tx: Transaction,
): InSteps<Pick<SecretOps, Names>> {
  return { ...valueOperations(sql, tx), ...attachmentOperations(sql, tx) };
}

function valueOperations(
  sql: SecretStatements,
  { crashPoint }: Transaction,
): InSteps<Pick<SecretOps, Exclude<Names, 'attachSecret' | 'detachSecret'>>> {
  type Value = Pick<NewSecret, 'id' | 'projectId' | 'sealed'>;
  function* fits({ id, projectId, sealed }: Value, { bytes }: SecretsMax): Steps<boolean> {
    return (yield* sql.bytesBeside({ id, projectId })) + sealed.length <= bytes;
  }

  return {
    *addSecretKeyPair(pair) {
      const stored = yield* sql.keyPair(pair.projectId);
      if (stored) return stored;
      sql.insertKeyPair(pair);
      return must(yield* sql.keyPair(pair.projectId), 'row');
    },

    *createSecret(secret, max) {
      const { projectId, keyPairId, secretKey } = secret;
      const pair = yield* sql.keyPair(projectId);
      if (pair?.id !== keyPairId) return { outcome: 'unknown-key-pair' };
      if (yield* sql.isNamed(projectId, secretKey)) return { outcome: 'name-taken' };
      if ((yield* sql.countOf(projectId)) >= max.count) return { outcome: 'too-many' };
      if (!(yield* fits(secret, max))) return { outcome: 'too-large' };
      const made = yield* sql.insert(secret);
      crashPoint('create-secret');
      return { outcome: 'written', secret: made };
    },

    *updateSecret(change, max) {
      const { id, projectId, keyPairId } = change;
      if (!(yield* sql.read({ id, projectId }))) return undefined;
      const pair = yield* sql.keyPair(projectId);
      if (pair?.id !== keyPairId) return { outcome: 'unknown-key-pair' };
      if (!(yield* fits(change, max))) return { outcome: 'too-large' };
      sql.setValue(change);
      const secret = must(yield* sql.read({ id, projectId }), 'row');
      return { outcome: 'written', secret };
    },

    *deleteSecret(wanted) {
      if (!(yield* sql.read(wanted))) return false;
      sql.detachAll(wanted.id);
      return yield* sql.remove(wanted);
    },
  };
}

function attachmentOperations(
  sql: SecretStatements,
  { crashPoint }: Transaction,
): InSteps<Pick<SecretOps, 'attachSecret' | 'detachSecret'>> {
  return {
    *attachSecret({ functionId, secretId, projectId }, max) {
      if (!(yield* sql.isFunction({ id: functionId, projectId }))) return 'no-function';
      if (!(yield* sql.read({ id: secretId, projectId }))) return 'no-secret';
      if (yield* sql.isAttached({ functionId, secretId })) return 'attached';
      if ((yield* sql.countAttached(functionId)) >= max) return 'too-many';
      sql.attach({ functionId, secretId });
      crashPoint('attach-secret');
      return 'attached';
    },

    *detachSecret({ functionId, secretId, projectId }) {
      if (!(yield* sql.isFunction({ id: functionId, projectId }))) return false;
      sql.detach({ functionId, secretId });
      return true;
    },
  };
}
