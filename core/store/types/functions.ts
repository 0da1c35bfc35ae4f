/** Builds, the functions and versions that they publish, and secrets of functions, as stored. */
import type { Dated, Owned, Timed } from './rows.ts';

export type BuildStatus = 'PENDING' | 'RUNNING' | 'COMPLETED' | 'FAILED';

export type BuildCause = { code: string; message: string };

export type BuildRow = Owned &
  Timed & {
    entrypoint: string;
    status: BuildStatus;
    /** JSON of a BuildCause. */
    cause: string | null;
  };

export type FunctionRow = Owned &
  Dated & {
    name: string;
  };

export type VersionRow = Owned & {
  functionId: string;
  buildId: string;
  /** JSON object. */
  sessionConfig: string | null;
  /** JSON schema. */
  paramsSchema: string | null;
  createdAt: number;
};

/** A function, and the version that one build published. */
export type BuiltFunction = { function: FunctionRow; version: VersionRow };

/** A page of what matches the filter. */
export type PageOf<Filter> = Filter & { offset: number; limit: number };
/** `total` is over all pages. */
export type Page<Row> = { rows: Row[]; total: number };

export type NewBuild = Owned & {
  entrypoint: string;
  archiveBlobId: string;
  /** The end of its wait for a runner. */
  waitUntil: number;
  expiresAt: number;
  /** Limit of the project's waiting builds. */
  queueMax: number;
  /** W3C trace context of the request; absent when it had none. */
  traceparent?: string | undefined;
  at: number;
};

export type BuildOps = {
  /** Stores the build and its job. Throws QUEUE_FULL. */
  createBuild(build: NewBuild): BuildRow;
  /** Only a COMPLETED build has functions. */
  getBuild(wanted: Owned): { build: BuildRow; functions: BuiltFunction[] } | undefined;
  /** Newest first. */
  listBuilds(
    wanted: PageOf<{ projectId: string; status: string | undefined }>,
  ): Page<{ build: BuildRow; functions: BuiltFunction[] }>;
};

export type FunctionOps = {
  getFunction(wanted: Owned): FunctionRow | undefined;
  /** Newest first. */
  listFunctions(wanted: PageOf<{ projectId: string }>): Page<FunctionRow>;
  getVersion(wanted: Owned): VersionRow | undefined;
  /** Newest first. */
  listVersions(wanted: PageOf<{ functionId: string; projectId: string }>): Page<VersionRow>;
  /** The version that an invocation runs. */
  newestVersion(wanted: { functionId: string; projectId: string }): VersionRow | undefined;
};

export type FunctionDeletionOps = {
  /**
   * Deletes it with its schedules: its name and its idempotency keys are free, and no other
   * operation finds it, its versions, its invocations, or the builds that purgeFunctions removes.
   * Nothing changes while it has `open` invocations, which wait or run. Undefined when there is
   * none.
   */
  deleteFunction(wanted: Owned & { at: number }): { open: number } | undefined;
  /**
   * Removes up to `max` rows of deleted functions, or of one of them: invocations and builds with
   * their logs, and versions. A build with another function's version stays. `dropped`: the blobs
   * of removed builds, without rows.
   */
  purgeFunctions(purge: { functionId?: string; max: number }): {
    rows: number;
    dropped: string[];
  };
};

/** Secrets of functions, and the key pairs that open them. */

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
  | { outcome: 'too-many' }
  | { outcome: 'too-large' };

/** Of one project: its secrets, and the bytes of their sealed values. */
export type SecretsMax = { count: number; bytes: number };

/** A secret with all that opens it. */
export type SealedSecret = {
  id: string;
  secretKey: string;
  updatedAt: number;
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
  createSecret(secret: NewSecret, max: SecretsMax): WrittenSecret;
  getSecret(wanted: Owned): SecretRow | undefined;
  /** Newest first, from behind `before`. */
  listSecrets(page: SecretPage): SecretRow[];
  /** Replaces its value; undefined when there is no such secret. */
  updateSecret(change: Omit<NewSecret, 'secretKey'>, max: SecretsMax): WrittenSecret | undefined;
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
