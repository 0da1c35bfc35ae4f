/** What contexts hold, as stored: one blob each, which saves and uploads replace. */

/** What a session starts from. */
export type LeasedContext = {
  id: string;
  persist: boolean;
  /** What was saved last; null while nothing was. */
  blobId: string | null;
  /** SPKI PEM. */
  publicKey: string;
  /** PKCS#8 DER, sealed for the place of this key pair. */
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
