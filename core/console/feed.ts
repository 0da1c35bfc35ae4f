/**
 * The feed of one project: reads what changed, at most four times a second, and tells all streams
 * of the project.
 */
import { pause } from '../../proto/common/pause.ts';
import type { ConsoleKind, WatchChangesResponse } from '../../proto/gen/tabern/v1/console.pb.ts';
import type { ChangedKind, Changes } from '../store/types/console.ts';
import type { Store } from '../store/types.ts';

/** In milliseconds: at most four messages a second for each kind. Source: console.proto. */
const INTERVAL_MS = 250;
/** Source: console.proto. */
const IDS_MAX = 100;

/** What one client has not received yet. A slow client receives fewer messages, each about more. */
export class Stream {
  /** By kind; undefined ids: many. */
  readonly #unsent = new Map<ConsoleKind, Set<string> | undefined>();
  readonly #kinds: readonly ConsoleKind[];
  #bell = Promise.withResolvers<void>();

  /** Of these kinds; of every kind when there is none. */
  constructor(kinds: readonly ConsoleKind[]) {
    this.#kinds = kinds;
  }

  ring(): void {
    this.#bell.resolve();
  }

  /** Resolves when it was rung since the last time. */
  async rung(): Promise<void> {
    await this.#bell.promise;
    this.#bell = Promise.withResolvers();
  }

  add(kind: ConsoleKind, ids: readonly string[] | undefined): void {
    if (kind !== 'ALL' && this.#kinds.length > 0 && !this.#kinds.includes(kind)) return;
    const known = this.#unsent.has(kind) ? this.#unsent.get(kind) : new Set<string>();
    const all = known && ids && new Set([...known, ...ids]);
    this.#unsent.set(kind, all && all.size <= IDS_MAX ? all : undefined);
    this.ring();
  }

  /** Each once. ALL includes every other kind. */
  take(version: number): WatchChangesResponse[] {
    const kinds = this.#unsent.has('ALL') ? (['ALL'] as const) : [...this.#unsent.keys()];
    const taken = kinds.map((kind) => {
      return { kind, ids: [...(this.#unsent.get(kind) ?? [])], version };
    });
    this.#unsent.clear();
    return taken;
  }
}

type FeedStore = Pick<Store, 'onWake' | 'watchChanges' | 'unwatchChanges' | 'takeChanges'>;

export class Feed {
  readonly streams = new Set<Stream>();
  /** Resolves when the store keeps the project's changes. */
  readonly started: Promise<void>;
  /** Of the last message: increases, also over a restart of core. */
  version: number;
  readonly #projectId: string;
  readonly #store: FeedStore;
  readonly #now: () => number;
  readonly #ended = new AbortController();
  readonly #unsubscribe: () => void;
  #isReading = false;
  #hasChanged = false;

  constructor(projectId: string, { store, now }: { store: FeedStore; now: () => number }) {
    this.#projectId = projectId;
    this.#store = store;
    this.#now = now;
    this.version = now();
    this.#unsubscribe = store.onWake(`changes:${projectId}`, () => {
      this.#hasChanged = true;
      if (!this.#isReading) void this.#read();
    });
    this.started = store.watchChanges(projectId);
  }

  close(): void {
    this.#ended.abort();
    this.#unsubscribe();
    // Fails when the store has closed, which keeps nothing.
    this.#store.unwatchChanges(this.#projectId).catch(() => undefined);
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    while (this.#hasChanged && !this.#ended.signal.aborted) {
      this.#hasChanged = false;
      try {
        this.#tell(await this.#store.takeChanges(this.#projectId));
      } catch {
        this.#hasChanged = true; // overloaded: the next turn reads them
      }
      await pause(INTERVAL_MS, this.#ended.signal);
    }
    this.#isReading = false;
  }

  #tell(changes: readonly Changes[]): void {
    if (changes.length === 0) return;
    this.version = Math.max(this.version + 1, this.#now());
    for (const { kind, ids } of changes) {
      const shown = kind.toUpperCase() as Uppercase<ChangedKind>;
      for (const stream of this.streams) stream.add(shown, ids);
    }
  }
}
