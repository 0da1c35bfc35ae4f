/**
 * Contexts. active -> deleted: a deleted one stays as a tombstone without its name and its private
 * key. A key pair leaves the pool in the operation that creates the context, so a pair belongs to
 * one context at most. The content is one blob, which saves and uploads replace; the last one wins.
 */
import type {
  ContextContentOps,
  ContextOps,
  ContextRow,
  NewContext,
  Replaced,
} from '../types/contexts.ts';
import type { LateLease, Owned } from '../types/rows.ts';
import type { StorageStatements } from './files.ts';
import type { InSteps, Read, Steps, Transaction } from './steps.ts';

type Content = { blobId: string | null; saveSeq: number };

export type ContextStatements = {
  isNameTaken(projectId: string, nameKey: string): Read<boolean>;
  /** Removes the oldest pair from the pool. */
  takeKeyPair(): Read<KeyPair | undefined>;
  /** Active. */
  insert(context: NewContext & KeyPair): Read<ContextRow>;
  /** The content of an active context. `saveSeq` counts its saves. */
  content(wanted: Owned): Read<Content | undefined>;
  /** To deleted; false when there is no such active context. */
  remove(wanted: Owned & { at: number }): Read<boolean>;
  /** The session of the lease's work. `seq`: `saveSeq` when the work was leased. */
  workOf(leaseId: string): Read<ContextWork | undefined>;
  lateWorkOf(wanted: LateLease): Read<ContextWork | undefined>;
  /** Whether the blob is a CONTEXT of the project that no context has as its content. */
  isFree(wanted: { blobId: string; projectId: string }): Read<boolean>;
  /** `savedBy`: the session of the save; null for an upload. */
  setContent(wanted: { id: string; blobId: string; savedBy: string | null; at: number }): void;
  /** Removes the row of a blob that is no content, and from which no open session started. */
  dropBlob(blobId: string): Read<boolean>;
};

type KeyPair = { keyPairId: string; publicKey: string; privateKey: Uint8Array };
type ContextWork = {
  sessionId: string;
  contextId: string | null;
  projectId: string;
  persist: number;
  seq: number;
};
type Operations = Pick<ContextOps, 'createContext' | 'deleteContext'> &
  Omit<ContextContentOps, 'getContextContent'>;

export function contextOperations(
  { contexts, storage }: { contexts: ContextStatements; storage: StorageStatements },
  { crashPoint }: Transaction,
): InSteps<Operations> {
  function* drop(blobIds: (string | null)[]): Steps<string[]> {
    const dropped: string[] = [];
    for (const id of blobIds) if (id !== null && (yield* contexts.dropBlob(id))) dropped.push(id);
    return dropped;
  }

  /** `seq`: the `saveSeq` that the new content follows. */
  function* replace(
    wanted: Owned & { blobId: string; seq: number; savedBy: string | null; at: number },
  ): Steps<Replaced | { outcome: 'refused' }> {
    const { blobId, seq } = wanted;
    const before = yield* contexts.content(wanted);
    if (before?.blobId === blobId) {
      // A repeat, whose answer was lost: the last save is its own.
      return { outcome: 'saved', replaced: before.saveSeq - 1 > seq, dropped: [] };
    }
    if (!(yield* contexts.isFree(wanted))) return { outcome: 'refused' };
    if (!before) return { outcome: 'deleted', dropped: yield* drop([blobId]) };
    contexts.setContent(wanted);
    crashPoint('save-context');
    const dropped = yield* drop([before.blobId]);
    return { outcome: 'saved', replaced: before.saveSeq > seq, dropped };
  }

  return {
    *createContext({ max = Number.POSITIVE_INFINITY, ...context }) {
      const { projectId, nameKey } = context;
      if (nameKey !== null && (yield* contexts.isNameTaken(projectId, nameKey))) {
        return { outcome: 'name-taken' };
      }
      const active = yield* storage.stored(projectId, 'ACTIVE_CONTEXT');
      if ((active?.count ?? 0) >= max) return { outcome: 'full' };
      const pair = yield* contexts.takeKeyPair();
      if (!pair) return { outcome: 'no-key' };
      return { outcome: 'created', context: yield* contexts.insert({ ...context, ...pair }) };
    },
    *deleteContext(wanted) {
      const before = yield* contexts.content(wanted);
      if (!before || !(yield* contexts.remove(wanted))) return undefined;
      return { dropped: yield* drop([before.blobId]) };
    },
    *saveContext({ leaseId, endedAfter, blobId, at }) {
      const live = yield* contexts.workOf(leaseId);
      const work = live ?? (yield* contexts.lateWorkOf({ leaseId, endedAfter }));
      if (!work) return { outcome: 'lost' };
      const { contextId: id, projectId, persist, seq, sessionId: savedBy } = work;
      if (id === null || persist !== 1) return { outcome: 'refused' };
      const before = live ? undefined : yield* contexts.content({ id, projectId });
      const isOlder = before && before.blobId !== blobId && before.saveSeq > seq;
      if (isOlder) {
        const isFree = yield* contexts.isFree({ blobId, projectId });
        return { outcome: 'older', dropped: isFree ? yield* drop([blobId]) : [] };
      }
      return yield* replace({ id, projectId, blobId, seq, savedBy, at });
    },
    *replaceContext(wanted) {
      const seq = (yield* contexts.content(wanted))?.saveSeq ?? 0;
      return yield* replace({ ...wanted, seq, savedBy: null });
    },
    dropContextBlobs: drop,
  };
}
