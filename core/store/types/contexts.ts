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
