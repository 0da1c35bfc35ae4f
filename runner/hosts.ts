/**
 * The function hosts of a runner: one process per project, spares that belong to nobody yet, one
 * fresh process for each introspection. A host that ended is forgotten; one that shall take no more
 * runs ends when its last run is over; one without runs ends after a while. A run goes to a host of
 * its project with a free thread, else to a spare, else to a new host: never more runs than
 * threads.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Log } from '../proto/log.ts';
import type { Serves } from './broker.ts';
import type { Bundle, Failure, HostProcess, RunOutcome } from './conversation.ts';
import type { LogLine } from './host/messages.ts';
import { startHost } from './host-process.ts';
import type { Outlet } from './host-spec.ts';
import type { Jail } from './jail/ladder.ts';

/** As many as a host has threads. Source: design/sandbox.md 3. */
const RUNS_MAX = 4;
/** Ours: a project that is used again within it finds its threads warm. */
const IDLE_MS = 60_000;
/** Ours: before a spare is tried again that did not start. */
const SPARE_RETRY_MS = 5_000;

/** One invocation, as a host needs it. */
export type Invoke = {
  invocationId: string;
  projectId: string;
  bundle: Bundle;
  functionName: string;
  paramsJson: string;
  sessionId: string;
  signingKey: string;
  region: string;
  /** The session's. */
  relay: Serves;
  onLines(lines: LogLine[]): void;
  /** Ends the run: ctx.signal aborts, the thread ends soon after, the process at last. */
  signal: AbortSignal;
};
export type InvokeOutcome = Exclude<RunOutcome, { type: 'manifests' }>;

/** What a build asks for: the functions that a bundle defines, found in a process of its own. */
export type Introspect = {
  projectId: string;
  bundle: Bundle;
  timeoutMs: number;
  onLine(line: LogLine): void;
  signal: AbortSignal;
};
export type Introspected =
  /** JSON of the tenant's making; its form is for the caller to check. */
  | { ok: true; manifests: unknown }
  | { ok: false; code: 'TIMED_OUT' | 'BUILD_ERROR'; message: string };

export type Hosts = AsyncDisposable & {
  invoke(invoke: Invoke): Promise<InvokeOutcome>;
  introspect(introspect: Introspect): Promise<Introspected>;
  /** Threads in use, those that only settle included. */
  threads(): number;
};

export type HostsOptions = {
  jail: Jail;
  /** Of this runner instance; hosts make their directories in it. */
  runDir: string;
  /** Ready hosts that wait for a project. */
  spares: number;
  /** The way of handlers to the internet; none when absent. */
  outlet?: Outlet | undefined;
  log: Log;
};

export function openHosts(options: HostsOptions): Hosts {
  const pool = new HostPool(options);
  return {
    async invoke(invoke) {
      const host = await pool.of(invoke.projectId);
      using _admitted = host.broker.admit(invoke.signingKey, invoke.relay);
      try {
        const connectUrl = host.connectUrl(invoke.signingKey);
        const outcome = await host.run(
          {
            type: 'invoke',
            id: invoke.invocationId,
            bundle: invoke.bundle.sha256,
            functionName: invoke.functionName,
            paramsJson: invoke.paramsJson,
            session: { id: invoke.sessionId, connectUrl },
            region: invoke.region,
          },
          invoke.bundle,
          invoke,
        );
        return outcome.type === 'manifests' ? NOT_ASKED : outcome;
      } finally {
        pool.release(host);
      }
    },
    introspect: (introspect) => introspected(pool, introspect),
    threads: () => pool.threads(),
    [Symbol.asyncDispose]: () => pool.close(),
  };
}

/** A host answered a run with manifests: only a tenant's own words can do that. */
const NOT_ASKED: Failure = {
  type: 'failure',
  code: 'WORKLOAD_ERROR',
  name: '',
  message: "the function's process broke the protocol of its host",
  stack: '',
};

async function introspected(pool: HostPool, introspect: Introspect): Promise<Introspected> {
  const { bundle, timeoutMs, onLine, signal } = introspect;
  const host = await pool.fresh();
  const over = AbortSignal.timeout(timeoutMs);
  try {
    const outcome = await host.run(
      { type: 'introspect', id: randomUUID(), bundle: bundle.sha256 },
      bundle,
      { onLines: (lines) => lines.forEach(onLine), signal: AbortSignal.any([over, signal]) },
    );
    if (outcome.type === 'manifests') {
      return { ok: true, manifests: JSON.parse(outcome.json) };
    }
    if (outcome.type === 'aborted') {
      const message = `the entry file did not finish loading within ${timeoutMs / 1_000} s`;
      return { ok: false, code: 'TIMED_OUT', message };
    }
    const why = outcome.type === 'failure' ? outcome : NOT_ASKED;
    const message = why.stack || [why.name, why.message].filter(Boolean).join(': ');
    return { ok: false, code: 'BUILD_ERROR', message };
  } finally {
    host.kill('its build is over');
    await host.ended;
  }
}

type Entry = { host: HostProcess; projectId: string; claimed: number; idle?: NodeJS.Timeout };

class HostPool {
  readonly #options: HostsOptions;
  readonly #entries = new Set<Entry>();
  readonly #spares: HostProcess[] = [];
  /** Everything that may still run, spares and introspections included. */
  readonly #alive = new Set<HostProcess>();
  /** Starts under way: a second run of a project waits for the first one's host. */
  readonly #starting = new Map<string, Promise<Entry>>();
  #sparesStarting = 0;
  #count = 0;
  #isClosed = false;

  constructor(options: HostsOptions) {
    this.#options = options;
    this.#refill();
  }

  /** A host of this project with a thread for one run; give it back with release. */
  async of(projectId: string): Promise<HostProcess> {
    for (;;) {
      const entry = this.#free(projectId) ?? (await this.#started(projectId));
      if (!isFree(entry)) continue; // others that waited for the same start were faster
      entry.claimed += 1;
      clearTimeout(entry.idle);
      return entry.host;
    }
  }

  release(host: HostProcess): void {
    const entry = [...this.#entries].find((one) => one.host === host);
    if (entry === undefined) return;
    entry.claimed -= 1;
    if (entry.claimed > 0) return;
    if (!host.isUsable()) host.kill('it shall take no more runs');
    else entry.idle = setTimeout(() => host.kill('it was idle'), IDLE_MS);
  }

  /** A host that has run nothing and belongs to the caller alone. */
  async fresh(): Promise<HostProcess> {
    const spare = this.#spares.shift();
    this.#refill();
    return spare?.isUsable() === true ? spare : await this.#start();
  }

  threads(): number {
    return [...this.#alive].reduce((sum, host) => sum + host.runs(), 0);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { idle } of this.#entries) clearTimeout(idle);
    for (const host of this.#alive) host.kill('the runner is ending');
    await Promise.all([...this.#alive].map((host) => host.ended));
  }

  #free(projectId: string): Entry | undefined {
    return [...this.#entries].find((entry) => entry.projectId === projectId && isFree(entry));
  }

  #started(projectId: string): Promise<Entry> {
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

  async #start(): Promise<HostProcess> {
    if (this.#isClosed) throw new Error('the runner is ending');
    const { jail, outlet, log, runDir } = this.#options;
    this.#count += 1;
    const host = await startHost({ jail, outlet, log, dir: join(runDir, `h${this.#count}`) });
    this.#alive.add(host);
    void host.ended.then(() => {
      this.#alive.delete(host);
      const at = this.#spares.indexOf(host);
      if (at >= 0) this.#spares.splice(at, 1);
    });
    if (this.#isClosed) host.kill('the runner is ending');
    return host;
  }

  /** Starts what is missing of the spares, in the background. */
  #refill(): void {
    while (!this.#isClosed && this.#spares.length + this.#sparesStarting < this.#options.spares) {
      this.#sparesStarting += 1;
      this.#start()
        .then((host) => void this.#spares.push(host))
        .catch((error: unknown) => {
          if (this.#isClosed) return;
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
