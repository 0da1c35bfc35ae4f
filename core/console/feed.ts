/**
 * The feed of one project: reads what changed, at most four times a second and less often for many
 * streams, and tells all streams of the project.
 */
import { pause } from '../../proto/common/pause.ts';
import type { ConsoleKind, WatchChangesResponse } from '../../proto/gen/tabern/v1/console.pb.ts';
import type { ChangedKind, Changes } from '../store/types/console.ts';
import type { Store } from '../store/types.ts';

/** In milliseconds: at most four messages a second for each kind. Source: console.proto. */
const INTERVAL_MS = 250;
/** Ours: a client answers a message by reading a list, about 2 ms of CPU time. */
const INTERVAL_PER_STREAM_MS = 3;
/** Source: console.proto. */
const IDS_MAX = 100;

type Unsent = { ids: ReadonlySet<string> | undefined; version: number };

/** What one client has not received yet. A slow client receives fewer messages, each about more. */
export class Stream {
  /** By kind, in the order of their versions; undefined ids: many. */
  readonly #unsent = new Map<ConsoleKind, Unsent>();
  readonly #kinds: readonly ConsoleKind[];
  #bell = Promise.withResolvers<void>();

  /** Of these kinds; of every kind when there is none. */
  constructor(kinds: readonly ConsoleKind[]) {
    this.#kinds = kinds;
  }

  wants(kind: ConsoleKind): boolean {
    return kind === 'ALL' || this.#kinds.length === 0 || this.#kinds.includes(kind);
  }

  ring(): void {
    this.#bell.resolve();
  }

  /** Resolves when it was rung since the last time. */
  async rung(): Promise<void> {
    await this.#bell.promise;
    this.#bell = Promise.withResolvers();
  }

  add(
    kind: ConsoleKind,
    { ids, version }: { ids?: Iterable<string> | undefined; version: number },
  ) {
    if (!this.wants(kind)) return;
    const known = this.#unsent.get(kind) ?? { ids: new Set<string>() };
    const all = known.ids && ids && new Set([...known.ids, ...ids]);
    this.#unsent.delete(kind);
    this.#unsent.set(kind, { ids: all && all.size <= IDS_MAX ? all : undefined, version });
    this.ring();
  }

  /** Each once. ALL includes every other kind. */
  take(): WatchChangesResponse[] {
    const all = [...this.#unsent].map(([kind, { ids, version }]) => {
      return { kind, ids: [...(ids ?? [])], version };
    });
    const { version = 0 } = all.at(-1) ?? {};
    const isAll = this.#unsent.has('ALL');
    this.#unsent.clear();
    return isAll ? [{ kind: 'ALL', ids: [], version }] : all;
  }
}

/** The pause between messages about a kind, for so many streams of one project. */
export function intervalMs(streams: number): number {
  return Math.max(INTERVAL_MS, streams * INTERVAL_PER_STREAM_MS);
}

type FeedStore = Pick<Store, 'onWake' | 'watchChanges' | 'unwatchChanges' | 'takeChanges'>;

export class Feed {
  readonly streams = new Set<Stream>();
  /** Resolves when the store keeps the project's changes. */
  readonly started: Promise<void>;
  /** Of the last message: increases, also over a restart of core. */
  version: number;
  readonly #begunAt: number;
  /** The last message about each kind. */
  readonly #told = new Map<ConsoleKind, number>();
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
    this.#begunAt = this.version;
    this.#unsubscribe = store.onWake(`changes:${projectId}`, () => {
      this.#hasChanged = true;
      if (!this.#isReading) void this.#read();
    });
    this.started = store.watchChanges(projectId);
  }

  /** Whether the stream's client, which has received that version, may have missed a message. */
  hasMissed(stream: Stream, after: number | undefined): boolean {
    if (after === undefined || after < this.#begunAt || after > this.version) return true;
    return [...this.#told].some(([kind, version]) => version > after && stream.wants(kind));
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
      await pause(intervalMs(this.streams.size), this.#ended.signal);
    }
    this.#isReading = false;
  }

  #tell(changes: readonly Changes[]): void {
    for (const { kind, ids } of changes) {
      const shown = kind.toUpperCase() as Uppercase<ChangedKind>;
      this.version = Math.max(this.version + 1, this.#now());
      this.#told.set(shown, this.version);
      for (const stream of this.streams) stream.add(shown, { ids, version: this.version });
    }
  }
}
