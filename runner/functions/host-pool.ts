/**
 * Pools function hosts by project. A spare is ready and belongs to no project; its first claim
 * assigns it to one until it ends. A host that takes no more runs ends after its last run; an idle
 * host ends after a while. Spares use memory, so they are kept only from the first use until none
 * was needed for SPARES_KEPT_MS.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HostConnection } from './host-connection.ts';
import { type HostOptions, MEMORY_MAX_BYTES, startHost } from './host-process.ts';

/** As many as a host has threads (runner/host/threads.ts). */
const RUNS_MAX = 4;
/**
 * Ours, per project: threads that continue after their runs, in hosts with pending runs. Each
 * occupies a core and about 20 MiB.
 */
const STUCK_MAX = RUNS_MAX;
const STUCK_POLL_MS = 100;
/** Ours: a project that is used again within this time finds warm threads. */
const IDLE_MS = 60_000;
/** Ours: how long spares are kept after the last use. Without one, a run starts 0.1 s later. */
const SPARES_KEPT_MS = 900_000;
/** Ours: before the start of a spare is retried. */
const SPARE_RETRY_MS = 5_000;

/** By default functions are warm, hosts have MEMORY_MAX_BYTES, and handlers no internet access. */
export type HostsOptions = Pick<HostOptions, 'jail' | 'runtime' | 'log'> &
  Partial<Pick<HostOptions, 'isolation' | 'memoryMaxBytes' | 'openEgress'>> & {
    /** Of this runner instance; hosts create their directories in it. */
    runDir: string;
    /** Ready hosts without a project, while hosts are in use. */
    spares: number;
    sparesKeptMs?: number;
  };

type Wait = { signal: AbortSignal; onWait(): void };
type Entry = { host: HostConnection; projectId: string; claimed: number; idle?: NodeJS.Timeout };

export class HostPool {
  readonly #options: HostsOptions;
  readonly #entries = new Set<Entry>();
  readonly #spares = new Set<HostConnection>();
  /** All running hosts, including spares and introspections. */
  readonly #alive = new Set<HostConnection>();
  /** Pending starts: a second run of a project waits for the first one's host. */
  readonly #starting = new Map<string, Promise<Entry>>();
  #sparesStarting = 0;
  /** Processes that are still starting. */
  readonly #starts = new Set<Promise<unknown>>();
  /** Pending while hosts are in use. */
  #inUse: NodeJS.Timeout | undefined;
  #count = 0;
  #isRetired = false;
  readonly #ending = new AbortController();

  constructor(options: HostsOptions) {
    this.#options = options;
  }

  /**
   * A host of this project with a thread for one run; return it with release. Waits while too many
   * of the project's earlier runs hold a thread, and calls `onWait` then; rejects when aborted.
   */
  async of(projectId: string, { signal, onWait }: Wait): Promise<HostConnection> {
    for (let waits = 0; this.#stuck(projectId) >= STUCK_MAX; waits += 1) {
      if (waits === 0) onWait();
      await sleep(STUCK_POLL_MS, undefined, { signal });
    }
    for (;;) {
      const entry = this.#findFree(projectId) ?? (await this.#startFor(projectId));
      if (!isFree(entry)) continue; // other runs that waited for the same start took its threads
      entry.claimed += 1;
      clearTimeout(entry.idle);
      return entry.host;
    }
  }

  release(host: HostConnection): void {
    const entry = [...this.#entries].find((one) => one.host === host);
    if (entry === undefined) return;
    entry.claimed -= 1;
    if (entry.claimed > 0) return;
    if (!host.isUsable()) host.kill('it takes no more runs');
    else entry.idle = setTimeout(() => host.kill('it was idle'), IDLE_MS);
  }

  /** An unused host for the caller alone. */
  async fresh(): Promise<HostConnection> {
    this.#keepSpares();
    const [spare] = this.#spares;
    if (spare) this.#spares.delete(spare);
    try {
      return spare?.isUsable() ? spare : await this.#start();
    } finally {
      this.#refill(); // after the start that the caller waits for
    }
  }

  /** Number of hosts that run or start. */
  processes(): number {
    return this.#alive.size + this.#sparesStarting;
  }

  /** Kills the spares: no host was needed for a while. */
  releaseSpares(): void {
    clearTimeout(this.#inUse);
    this.#inUse = undefined;
    for (const host of this.#spares) host.kill('no host was needed for a while');
  }

  /** Keeps no more spares: the runner drains. */
  retire(): void {
    this.#isRetired = true;
    this.releaseSpares();
  }

  threads(): number {
    return [...this.#alive].reduce((sum, host) => sum + host.runs(), 0);
  }

  async close(): Promise<void> {
    this.#ending.abort(new Error('the runner is ending'));
    clearTimeout(this.#inUse);
    for (const { idle } of this.#entries) clearTimeout(idle);
    for (const host of this.#alive) host.kill('the runner is ending');
    await Promise.allSettled(this.#starts);
    await Promise.all([...this.#alive].map((host) => host.ended));
  }

  #findFree(projectId: string): Entry | undefined {
    return [...this.#entries].find((entry) => entry.projectId === projectId && isFree(entry));
  }

  /** Threads of a project that continue after their runs, in hosts that take no more runs. */
  #stuck(projectId: string): number {
    const hosts = [...this.#entries].filter((entry) => {
      return entry.projectId === projectId && !entry.host.isUsable();
    });
    return hosts.reduce((sum, { host, claimed }) => sum + Math.max(0, host.runs() - claimed), 0);
  }

  #startFor(projectId: string): Promise<Entry> {
    const known = this.#starting.get(projectId);
    if (known !== undefined) return known;
    const started = this.fresh().then((host) => {
      const entry: Entry = { host, projectId, claimed: 0 };
      this.#entries.add(entry);
      void host.ended.then(() => {
        clearTimeout(entry.idle);
        this.#entries.delete(entry);
      });
      return entry;
    });
    this.#starting.set(projectId, started);
    const forget = (): void => void this.#starting.delete(projectId);
    started.then(forget, forget);
    return started;
  }

  #start(): Promise<HostConnection> {
    const start = this.#startOne();
    this.#starts.add(start);
    const forget = (): void => void this.#starts.delete(start);
    start.then(forget, forget);
    return start;
  }

  async #startOne(): Promise<HostConnection> {
    const { signal } = this.#ending;
    signal.throwIfAborted();
    this.#count += 1;
    const host = await startHost({
      isolation: 'warm',
      memoryMaxBytes: MEMORY_MAX_BYTES,
      openEgress: undefined,
      ...this.#options,
      dir: join(this.#options.runDir, `h${this.#count}`),
      signal,
    });
    this.#alive.add(host);
    void host.ended.then(() => {
      this.#alive.delete(host);
      this.#spares.delete(host);
    });
    if (signal.aborted) {
      host.kill(signal.reason.message);
      await host.ended;
      throw signal.reason;
    }
    return host;
  }

  #keepSpares(): void {
    clearTimeout(this.#inUse);
    const { sparesKeptMs = SPARES_KEPT_MS } = this.#options;
    this.#inUse = setTimeout(() => this.releaseSpares(), sparesKeptMs).unref();
  }

  /** Starts missing spares in the background. */
  #refill(): void {
    const isOver = () => this.#isRetired || this.#ending.signal.aborted;
    const isWanted = () => !isOver() && this.#inUse !== undefined;
    while (isWanted() && this.#spares.size + this.#sparesStarting < this.#options.spares) {
      this.#sparesStarting += 1;
      this.#start()
        .then((host) => {
          this.#spares.add(host);
          if (!isWanted()) host.kill('no host was needed for a while');
        })
        .catch((error: unknown) => {
          if (this.#ending.signal.aborted) return;
          this.#options.log.error({ error: String(error) }, 'a spare function host did not start');
          setTimeout(() => this.#refill(), SPARE_RETRY_MS).unref();
        })
        .finally(() => {
          this.#sparesStarting -= 1;
        });
    }
  }
}

function isFree({ host, claimed }: Entry): boolean {
  return host.isUsable() && Math.max(claimed, host.runs()) < RUNS_MAX;
}
