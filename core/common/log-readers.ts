/**
 * Logs that are being read: runners report entries of theirs without waiting for others'. Kept in
 * memory. Of several cores, the one that serves a read sends it to the others.
 */
import { LRUCache } from 'lru-cache';

/** In milliseconds after a read. Ours: a page that follows a log reads it at each change. */
const KEPT_MS = 60_000;
/** Ours: beyond it, the log that was read longest ago is reported as usual. */
const READ_MAX = 1_000;
/** In milliseconds: how often a read is sent to other cores. Ours: far below KEPT_MS. */
const RESENT_MS = 20_000;

export type LogReaders = {
  /** Somebody reads the log of this session, invocation or build. */
  note(id: string): void;
  /** Whose logs were read lately. */
  ids(): string[];
};

/** Messages between cores, as core/store/types.ts. */
type Cores = {
  sendToCores(kind: 'reader', content: string): void;
  onCoreMessage(kind: 'reader', listener: (content: string) => void): void;
};

/** `now`: monotonic, in milliseconds. */
export function openLogReaders(cores: Cores, now: () => number): LogReaders {
  const readAt = new LRUCache<string, number>({ max: READ_MAX });
  const sentAt = new LRUCache<string, number>({ max: READ_MAX });
  cores.onCoreMessage('reader', (id) => void readAt.set(id, now()));
  return {
    note(id) {
      readAt.set(id, now());
      if (now() - (sentAt.get(id) ?? Number.NEGATIVE_INFINITY) < RESENT_MS) return;
      sentAt.set(id, now());
      cores.sendToCores('reader', id);
    },
    ids() {
      const since = now() - KEPT_MS;
      return [...readAt.entries()].filter(([, at]) => at > since).map(([id]) => id);
    },
  };
}
