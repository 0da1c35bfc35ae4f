/**
 * The chunks of one session's protocol log that core has not taken yet, in order: each in a file of
 * the session's own directory, which is created with the first of them. The directory is below that
 * of the runner, so nothing of it outlives a killed runner (runner/machine/stale-runs.ts).
 *   made -> stored -> taken;  made -> taken;  stored -> lost (the file cannot be read)
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SESSION_LOG_MAX_BYTES } from '../../../proto/common/limits.ts';
import type { Log } from '../../../proto/common/log.ts';
import { openShares, type Shares } from '../../../proto/sharing/shares.ts';
import { until } from '../../common/abort.ts';

/**
 * In bytes on disk, of all sessions of a runner, shared by project. Ours: a single project has half
 * of it, ten times a full log before compression.
 */
const SPACE_BYTES = 1 << 30;
/** Ours: a directory of a session is removed in less, unless the disk hangs. */
const CLOSE_MS = 5_000;
/** Reserved until the length of a chunk is known. Source: SessionLogChunk of runners.proto. */
export const RESERVED_BYTES = 1 << 20;

/** Some entries as core stores them; `size`: in bytes before compression. */
export type Packed = { entries: Buffer; size: number };
export type Chunk = Packed & { count: number };

/** `bytes`: on disk. */
type StoredFile = Omit<Chunk, 'entries'> & { bytes: number; path: string };
/** One that could not be written is in memory. */
type Stored = StoredFile | (Chunk & { bytes: 0 });

type SpoolOptions = {
  /** Of the runner. */
  runDir: string;
  projectId: string;
  space: Shares;
  log: Log;
  /** Takes the next entries, and makes a chunk of them. */
  make(): { count: number; packed: Promise<Packed> };
  /** So many entries were stored and are gone. */
  onLost(count: number): void;
  /** In bytes before compression. */
  maxBytes?: number;
};

/** For all sessions of a runner. */
export function openLogSpace(): Shares {
  return openShares(SPACE_BYTES);
}

export class Spool {
  readonly #options: SpoolOptions;
  #stored: Stored[] = [];
  #count = 0;
  #size = 0;
  #chunks = 0;
  /** Bytes of files that were taken and could not be removed. */
  #left = 0;
  #dir: Promise<string> | undefined;
  /** Chunks are made, stored and taken one at a time: their order is that of their entries. */
  #turn: Promise<unknown> = Promise.resolve();
  #isFilling = false;
  #hasFailed = false;
  #isClosed = false;

  constructor(options: SpoolOptions) {
    this.#options = options;
  }

  /** The number of its entries, those on their way to the disk included. */
  get count(): number {
    return this.#isClosed ? 0 : this.#count;
  }

  /**
   * Stores chunks while `isDue`, up to the limits. Without a disk that works, entries stay where
   * they are. Never rejects.
   */
  async fill(isDue: () => boolean): Promise<void> {
    if (this.#isFilling) return;
    this.#isFilling = true;
    while (isDue() && this.#reserve()) await this.#inTurn(() => this.#store(isDue));
    this.#isFilling = false;
  }

  /** Removes the oldest chunk; makes one when none is stored. */
  next(): Promise<Chunk> {
    return this.#inTurn(async () => {
      const { make } = this.#options;
      for (let oldest = this.#shift(); oldest !== undefined; oldest = this.#shift()) {
        const entries = 'entries' in oldest ? oldest.entries : await this.#read(oldest);
        if (entries !== undefined) return { entries, size: oldest.size, count: oldest.count };
      }
      const { count, packed } = make();
      return { ...(await packed), count };
    });
  }

  /** Removes its files; nothing is stored afterwards. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    // a chunk that is being stored; a disk that hangs must not hold up the end of a session
    const removed = this.#turn.then(() => this.#removeAll());
    await until(removed, AbortSignal.timeout(CLOSE_MS)).catch((error) => this.#fail(error));
  }

  async #removeAll(): Promise<void> {
    for (let one = this.#shift(); one !== undefined; one = this.#shift()) this.#left += one.bytes;
    const dir = await this.#dir?.catch(() => undefined);
    if (dir === undefined) return;
    await rm(dir, { recursive: true, force: true });
    this.#options.space.release(this.#options.projectId, this.#left);
    this.#left = 0;
  }

  /** False without room for one more chunk. */
  #reserve(): boolean {
    const { projectId, space, maxBytes = SESSION_LOG_MAX_BYTES } = this.#options;
    if (this.#hasFailed || this.#isClosed || this.#size >= maxBytes) return false;
    return space.acquire(projectId, RESERVED_BYTES);
  }

  /** Releases what the chunk does not need. */
  async #store(isDue: () => boolean): Promise<void> {
    const { projectId, space } = this.#options;
    // entries may have been taken before this turn
    const bytes = isDue() && !this.#isClosed ? await this.#storeNext() : 0;
    space.release(projectId, RESERVED_BYTES - bytes);
  }

  /** Makes and stores a chunk; returns its bytes on disk. Never rejects. */
  async #storeNext(): Promise<number> {
    const { make, onLost } = this.#options;
    const { count, packed } = make();
    this.#count += count;
    try {
      const { entries, size } = await packed;
      const path = await this.#write(entries);
      const bytes = path === undefined ? 0 : entries.length;
      if (path === undefined) this.#stored.push({ count, size, bytes: 0, entries });
      else this.#stored.push({ count, size, bytes, path });
      this.#size += size;
      return bytes;
    } catch (error) {
      this.#count -= count;
      this.#fail(error);
      onLost(count);
      return 0;
    }
  }

  /** The oldest; its file is the caller's to remove. */
  #shift(): Stored | undefined {
    const oldest = this.#stored.shift();
    if (oldest === undefined) return undefined;
    this.#count -= oldest.count;
    this.#size -= oldest.size;
    return oldest;
  }

  /** The path; undefined when the disk is full or broken. */
  async #write(entries: Buffer): Promise<string | undefined> {
    let path: string | undefined;
    try {
      this.#dir ??= mkdtemp(join(this.#options.runDir, 'log-'));
      path = join(await this.#dir, String(this.#chunks++));
      await writeFile(path, entries, { flag: 'wx', mode: 0o600 });
      return path;
    } catch (error) {
      this.#fail(error);
      if (path !== undefined) await rm(path, { force: true }).catch(() => undefined);
      return undefined;
    }
  }

  /** Reads a file and removes it; undefined, and its entries lost, when that fails. */
  async #read({ path, bytes, count }: StoredFile): Promise<Buffer | undefined> {
    const { projectId, space, onLost } = this.#options;
    try {
      const entries = await readFile(path);
      if (entries.length !== bytes) throw new Error('a part of a log was not stored completely');
      return entries;
    } catch (error) {
      this.#fail(error);
      onLost(count);
      return undefined;
    } finally {
      await rm(path, { force: true }).then(
        () => space.release(projectId, bytes),
        (error: unknown) => {
          this.#left += bytes; // until `close` has removed it
          this.#fail(error);
        },
      );
    }
  }

  /** Memory alone is used from now on. */
  #fail(error: unknown): void {
    if (!this.#hasFailed) this.#options.log.warn({ err: error }, 'a log cannot wait on the disk');
    this.#hasFailed = true;
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(act);
    this.#turn = done.catch(() => undefined); // the caller has its error
    return done;
  }
}
