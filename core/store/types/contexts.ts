/** Contexts, their content, and the pool of their key pairs, as stored. */
import type { Dated, LateLease, Owned } from './rows.ts';

export type ContextRow = Owned &
  Dated & {
    /** Trimmed. */
    name: string | null;
    /** SPKI PEM. */
    publicKey: string;
  };

export type NewContext = Owned & {
  name: string | null;
  /** Names with equal keys are the same. */
  nameKey: string | null;
  at: number;
  /** Limit of the project's active contexts; absent: none. */
  max?: number;
};

export type NewKeyPair = {
  id: string;
  /** SPKI PEM. */
  publicKey: string;
  /** PKCS#8 DER, sealed. */
  privateKey: Uint8Array;
  at: number;
};

export type CreatedContext =
  | { outcome: 'created'; context: ContextRow }
  | { outcome: 'name-taken' }
  | { outcome: 'full' }
  | { outcome: 'no-key' };

export type ContextOps = {
  /** The sealed check value of the master key; undefined before the first start. */
  masterKeyCheck(): Uint8Array | undefined;
  /** An existing value is not replaced. */
  setMasterKeyCheck(sealed: Uint8Array): void;

  countKeyPairs(): number;
  /** Adds a pair to the pool; returns the size of the pool. */
  addKeyPair(pair: NewKeyPair): number;

  /** Creates a context with the oldest pair of the pool, and removes the pair. */
  createContext(context: NewContext): CreatedContext;
  getContext(wanted: Owned): ContextRow | undefined;
  /** Active ones, newest first, from behind `before`. */
  listContexts(page: {
    projectId: string;
    before: string | undefined;
    limit: number;
  }): ContextRow[];
  /**
   * Removes its name, its private key and its content; undefined when there is no such active
   * context. `dropped`: blobs whose files the caller removes.
   */
  deleteContext(wanted: Owned & { at: number }): { dropped: string[] } | undefined;
};

/** The context that a session starts from. */
export type LeasedContext = {
  id: string;
  persist: boolean;
  /** The last saved content; null before the first save. */
  blobId: string | null;
  /** SPKI PEM. */
  publicKey: string;
  /** PKCS#8 DER, sealed with this key pair's associated data. */
  privateKey: Uint8Array;
  keyPairId: string;
};

/** A context's content, and the keys that open it. */
export type ContextContent = Omit<LeasedContext, 'persist'>;

/** `dropped`: blobs without rows, whose files the caller removes. */
export type Replaced =
  | { outcome: 'saved'; replaced: boolean; dropped: string[] }
  /** The context was deleted, and the new content with it. */
  | { outcome: 'deleted'; dropped: string[] };

/** `lost`: no live lease. `refused`: the work may not save, or the blob is not valid for it. */
export type Saved =
  | Replaced
  /** Late, and the context was saved since: the new content was dropped. */
  | { outcome: 'older'; dropped: string[] }
  | { outcome: 'lost' }
  | { outcome: 'refused' };

export type ContextContentOps = {
  getContextContent(wanted: Owned): ContextContent | undefined;
  /**
   * Makes the blob the content of the context that the lease's session persists. The last save
   * wins; a repeated call changes nothing. `lost`: the lease is not live, and not of a
   * session that core gave up later than `endedAfter`.
   */
  saveContext(wanted: LateLease & { blobId: string; at: number }): Saved;
  /** As saveContext, for a verified upload. */
  replaceContext(wanted: Owned & { blobId: string; at: number }): Replaced | { outcome: 'refused' };
  /** Removes rows of blobs that are no context's content; returns the removed ids. */
  dropContextBlobs(ids: string[]): string[];
};
