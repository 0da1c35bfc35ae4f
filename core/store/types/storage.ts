/** What projects store, and quotas of their own, as stored. */
import type { BlobKind } from './blobs.ts';

export type StoredKind = BlobKind | 'ACTIVE_CONTEXT' | 'SESSION_LOG' | 'RESULT';

/** As in ProjectLimits of operators.proto. */
export type QuotaName =
  | 'contexts'
  | `${'context' | 'download' | 'recording' | 'upload' | 'log'}Mib`;

export type Stored = { kind: StoredKind; count: number; bytes: number };

/** What is to stay within a quota. */
export type Within = { kinds: readonly StoredKind[]; maxBytes: number };

export type StorageOps = {
  /** What the project stores, and the quotas that its operator has set. */
  projectStorage(projectId: string): {
    stored: Stored[];
    quotas: { quota: QuotaName; value: number }[];
  };
};
