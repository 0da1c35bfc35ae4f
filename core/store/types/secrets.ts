/** Secrets of functions and the key pairs that open them, as stored. */
import type { Dated, Owned } from './rows.ts';

/** Without its value. */
export type SecretRow = Owned &
  Dated & {
    /** Its name, unique in the project. */
    secretKey: string;
  };

export type SecretKeyPair = Owned & {
  /** X25519, 32 bytes. */
  publicKey: Uint8Array;
  /** X25519, 32 bytes, sealed with this pair's associated data. */
  privateKey: Uint8Array;
};

export type NewSecret = Owned & {
  secretKey: string;
  keyPairId: string;
  /** As the client sealed it. */
  sealed: Uint8Array;
  at: number;
};

export type WrittenSecret =
  | { outcome: 'written'; secret: SecretRow }
  | { outcome: 'unknown-key-pair' }
  | { outcome: 'name-taken' }
  | { outcome: 'too-many' };

/** A secret with all that opens it. */
export type SealedSecret = {
  secretKey: string;
  sealed: Uint8Array;
  /** Of its key pair; null when there is none. */
  keyPairId: string | null;
  privateKey: Uint8Array | null;
};

export type SecretPage = {
  projectId: string;
  before: string | undefined;
  limit: number;
  /** Of the creation, inclusive. */
  startAt: number | undefined;
  endAt: number | undefined;
};

export type SecretOps = {
  /** The project's pair. */
  getSecretKeyPair(projectId: string): SecretKeyPair | undefined;
  /** Adds the pair unless the project has one; returns the project's pair. */
  addSecretKeyPair(pair: SecretKeyPair & { at: number }): SecretKeyPair;
  /** At most `max` secrets per project. */
  createSecret(secret: NewSecret, max: number): WrittenSecret;
  getSecret(wanted: Owned): SecretRow | undefined;
  /** Newest first, from behind `before`. */
  listSecrets(page: SecretPage): SecretRow[];
  /** Replaces its value; undefined when there is no such secret. */
  updateSecret(change: Omit<NewSecret, 'secretKey'>): WrittenSecret | undefined;
  /** Detaches it from all functions, too; false when there is no such secret. */
  deleteSecret(wanted: Owned): boolean;
  /** As listSecrets, for those that are attached to the function. */
  listFunctionSecrets(page: SecretPage & { functionId: string }): SecretRow[];
  /** At most `max` secrets per function. Names what is missing. */
  attachSecret(
    wanted: { functionId: string; secretId: string; projectId: string },
    max: number,
  ): 'attached' | 'no-function' | 'no-secret' | 'too-many';
  /** False when there is no such function. */
  detachSecret(wanted: { functionId: string; secretId: string; projectId: string }): boolean;
  /** All that are attached to the function, in the order of their names. */
  sealedSecretsOf(wanted: { functionId: string; projectId: string }): SealedSecret[];
};
