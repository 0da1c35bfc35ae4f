/** Contexts, and the pool of key pairs that they are made with, as stored. */

export type ContextRow = {
  id: string;
  projectId: string;
  /** Trimmed. */
  name: string | null;
  /** SPKI PEM. */
  publicKey: string;
  createdAt: number;
  updatedAt: number;
};

export type NewContext = {
  id: string;
  projectId: string;
  name: string | null;
  /** What makes two names the same. */
  nameKey: string | null;
  at: number;
  /** Active contexts that the project may have; absent: any number. */
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
  /** The value that proves the master key; undefined before the first start. */
  masterKeyCheck(): Uint8Array | undefined;
  /** Stores it; one that exists already stays as it is. */
  setMasterKeyCheck(sealed: Uint8Array): void;

  countKeyPairs(): number;
  /** Adds a pair to the pool; gives back how many are there now. */
  addKeyPair(pair: NewKeyPair): number;

  /** The context, made with the oldest pair of the pool, which it takes. */
  createContext(context: NewContext): CreatedContext;
  getContext(wanted: { id: string; projectId: string }): ContextRow | undefined;
  /** Active ones, newest first, from behind `before`. */
  listContexts(page: {
    projectId: string;
    before: string | undefined;
    limit: number;
  }): ContextRow[];
  /**
   * Frees its name, wipes its private key and forgets its content; undefined when there is no such
   * active context. `dropped`: blobs whose files are the caller's to remove.
   */
  deleteContext(wanted: {
    id: string;
    projectId: string;
    at: number;
  }): { dropped: string[] } | undefined;
};

/** What contexts hold, as stored: one blob each, which saves and uploads replace. */

/** What a session starts from. */
export type LeasedContext = {
  id: string;
  persist: boolean;
  /** What was saved last; null while nothing was. */
  blobId: string | null;
  /** SPKI PEM. */
  publicKey: string;
  /** PKCS#8 DER, sealed with this key pair's associated data. */
  privateKey: Uint8Array;
  keyPairId: string;
};

/** A context with what it holds and what opens it. */
export type ContextContent = Omit<LeasedContext, 'persist'>;

/** `dropped`: blobs whose rows are gone; their files are the caller's to remove. */
export type Replaced =
  | { outcome: 'saved'; replaced: boolean; dropped: string[] }
  /** The context was deleted, and with it what should have replaced its content. */
  | { outcome: 'deleted'; dropped: string[] };

/** `lost`: no live lease. `refused`: its work may not save, or the blob is none to save. */
export type Saved = Replaced | { outcome: 'lost' } | { outcome: 'refused' };

export type ContextContentOps = {
  getContextContent(wanted: { id: string; projectId: string }): ContextContent | undefined;
  /**
   * The blob becomes the content of the context that the lease's session persists. The last one
   * wins; repeating it changes nothing.
   */
  saveContext(wanted: { leaseId: string; blobId: string; at: number }): Saved;
  /** As saveContext, for an upload that has proved good. */
  replaceContext(wanted: {
    id: string;
    projectId: string;
    blobId: string;
    at: number;
  }): Replaced | { outcome: 'refused' };
  /** Forgets blobs of contexts; those that are content stay. Gives the forgotten. */
  dropContextBlobs(ids: string[]): string[];
};
