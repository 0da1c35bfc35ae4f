/**
 * Fair shares of a thread's time. One thread serves all sessions of a runner. The work of each
 * session is timed, and a session that has used much time pauses while others are active. Only
 * reading pauses, from its clients and from its Chrome; no message is lost or refused, and no
 * connection closes.
 */

import type { Pauses } from './pauses.ts';

/** Ours: burst allowance of a session that was idle. */
const BURST_MS = 100;
/** Ours: fraction of the time for all sessions that exceed a burst. */
const RATE = 0.5;
/** Ours: longer than the longest unit of work, shorter than any deadline. */
const REST_MAX_MS = 1_000;
/** Ours: maximum debt of a session that was alone. */
const LEVEL_MAX_MS = 1_000;
/**
 * Ours: a session with less work within the last second is idle; a heartbeat takes a tenth of it.
 */
const AT_WORK_MS = 1;
const LATELY_MS = 1_000;

/** A stream with work for a session. */
type Source = Pick<Pauses, 'pause' | 'resume'>;

/** The shares of this thread. */
const shares = new Set<Share>();

/** One session's share. */
export class Share implements Disposable {
  readonly #now: () => number;
  readonly #sources = new Set<Source>();
  /** Time used, minus the time given back since. */
  #level = 0;
  #at = 0;
  /** Used in this second, and in the one before. */
  #second = 0;
  #taken = 0;
  #takenBefore = 0;
  #rest: NodeJS.Timeout | undefined;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    shares.add(this);
  }

  /** Runs a unit of the session's work and counts its time. */
  spend<T>(work: () => T): T {
    const before = this.#now();
    try {
      return work();
    } finally {
      this.#take(before, this.#now());
    }
  }

  /** Pauses the source while the session rests; returns the function that removes it. */
  add(source: Source): () => void {
    this.#sources.add(source);
    if (this.#rest !== undefined) source.pause(this);
    return () => void this.#sources.delete(source);
  }

  [Symbol.dispose](): void {
    shares.delete(this);
    this.#wake();
  }

  #take(before: number, after: number): void {
    const given = RATE * (before - this.#at);
    this.#level = Math.min(LEVEL_MAX_MS, Math.max(0, this.#level - given) + after - before);
    this.#at = after;
    this.#turnTo(after);
    this.#taken += after - before;
    if (this.#level > BURST_MS && this.#rest === undefined && shares.has(this)) this.#yield();
  }

  #yield(): void {
    const others = [...shares].filter((share) => share !== this && share.#isAtWork(this.#at));
    if (others.length === 0) return;
    const greedy = others.filter((share) => share.#level > BURST_MS).length + 1;
    const ms = Math.min(REST_MAX_MS, ((this.#level - BURST_MS / 2) * greedy) / RATE);
    this.#rest = setTimeout(() => this.#wake(), ms);
    for (const source of this.#sources) source.pause(this);
  }

  #wake(): void {
    if (this.#rest === undefined) return;
    clearTimeout(this.#rest);
    this.#rest = undefined;
    for (const source of this.#sources) source.resume(this);
  }

  #isAtWork(at: number): boolean {
    this.#turnTo(at);
    return this.#taken + this.#takenBefore > AT_WORK_MS;
  }

  #turnTo(at: number): void {
    const second = Math.floor(at / LATELY_MS);
    if (second === this.#second) return;
    this.#takenBefore = second === this.#second + 1 ? this.#taken : 0;
    this.#taken = 0;
    this.#second = second;
  }
}
