/**
 * The sender: claims deliveries that are due, posts each, reports how it ended. It holds no secret
 * and no database, and reaches core by two calls only. running -> closing (claims no more, lets
 * attempts end) -> closed.
 * A report is repeated until core answers: a result is lost only with the process, or when core is
 * away for a minute, and then the delivery is sent again, with the same id. Any number of senders
 * may run: the claim is the lock.
 */
import { randomUUID } from 'node:crypto';
import type { BlockList } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { asFault } from '../../proto/errors.ts';
import type { AttemptReport, Claim } from '../../proto/gen/tabern/v1/deliveries.pb.ts';
import type { Log } from '../../proto/log.ts';
import type { Clients } from '../../proto/services.ts';
import { openGuard, type Resolve } from './guard.ts';
import { openPools } from './pools.ts';
import { BUDGET, type Budget, send, type Wire } from './send.ts';

/** Attempts in flight of one sender, and items of one call. Source: spec/webhooks.md 3.9. */
const IN_FLIGHT_MAX = 64;
const BATCH_MAX = 64;
/** In milliseconds. */
const CLAIM_WAIT_MS = 5_000;
const CALL_TIMEOUT_MS = 10_000;
/**
 * In milliseconds: a signature is as old as its claim; what could not start by then is handed back.
 */
const CLAIM_FRESH_MS = 10_000;
/** In milliseconds. Core takes the lease back after 45 s anyway. Source: spec/webhooks.md 3.10. */
const REPORT_KEPT_MS = 60_000;
/** In milliseconds: the wait between calls that fail, doubling between these. */
const BACKOFF_MIN_MS = 200;
const BACKOFF_MAX_MS = 2_000;
/**
 * In milliseconds: attempts in flight get this long at close. Ours: within the drain of the
 * gateway.
 */
const CLOSE_MAX_MS = 10_000;

export type DispatcherOptions = {
  client: Clients['deliveries'];
  /** The gateway token. */
  token: string;
  /**
   * One per gateway, the same at each start of it: what an earlier start held is taken over at
   * once.
   */
  senderId: string;
  /** Addresses that are allowed beside the public ones. */
  allow: BlockList;
  /** PEM text: certificates trusted beside the system's. */
  ca?: string | undefined;
  log: Log;
  /** For tests. */
  budget?: Budget;
  resolve?: Resolve;
  closeMaxMs?: number;
};

export type Dispatcher = AsyncDisposable & {
  /**
   * Claims no more, lets attempts end within a limit, reports them. A second call waits for the
   * same end.
   */
  close(): Promise<void>;
};

/** Starts to send. */
export function startDispatcher(options: DispatcherOptions): Dispatcher {
  const { allow, ca, budget = BUDGET, closeMaxMs = CLOSE_MAX_MS } = options;
  const guard = openGuard(allow, options.resolve);
  const pools = openPools(guard, ca);
  const sender = new Sender(options, { guard, pools, budget });

  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= (async () => {
      await sender.end(closeMaxMs);
      await pools[Symbol.asyncDispose]();
    })();
    return closing;
  };
  return { close, [Symbol.asyncDispose]: close };
}

type Kept = { report: AttemptReport; until: number };

class Sender {
  readonly #options: DispatcherOptions;
  readonly #wire: Wire;
  readonly #identity: { senderId: string; instanceId: string };
  /** No more claims. */
  readonly #stopping = new AbortController();
  /** No more waiting for attempts. */
  readonly #cutting = new AbortController();
  readonly #inFlight = new Set<Promise<void>>();
  readonly #reports: Kept[] = [];
  readonly #stopped: Promise<void>;
  readonly #claiming: Promise<void>;
  #reporting: Promise<void> | undefined;

  constructor(options: DispatcherOptions, wire: Wire) {
    this.#options = options;
    this.#wire = wire;
    this.#identity = { senderId: options.senderId, instanceId: instanceId() };
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#stopped = promise;
    this.#stopping.signal.addEventListener('abort', () => resolve(), { once: true });
    this.#claiming = this.#claimLoop();
  }

  async end(maxMs: number): Promise<void> {
    this.#stopping.abort();
    await this.#claiming;
    const timer = setTimeout(() => this.#cutting.abort(), maxMs);
    await Promise.all(this.#inFlight);
    clearTimeout(timer);
    // One more try for what is left, in order of arrival; core releases the rest at the next start.
    this.#cutting.abort();
    await this.#reporting;
    if (this.#reports.length > 0) await this.#reportOnce().catch(() => undefined);
  }

  async #claimLoop(): Promise<void> {
    const { signal } = this.#stopping;
    let backoffMs = BACKOFF_MIN_MS;
    while (!signal.aborted) {
      const free = IN_FLIGHT_MAX - this.#inFlight.size - this.#reports.length;
      if (free <= 0) {
        await this.#placeFree();
        continue;
      }
      try {
        const claims = await this.#claim(free, signal);
        backoffMs = BACKOFF_MIN_MS;
        for (const claim of claims) this.#start(claim);
      } catch (error) {
        if (signal.aborted) return;
        this.#options.log.warn({ reason: asFault(error).reason }, 'deliveries cannot be claimed');
        await pause(backoffMs, signal);
        backoffMs = Math.min(backoffMs * 2, BACKOFF_MAX_MS);
      }
    }
  }

  async #claim(max: number, signal: AbortSignal): Promise<Claim[]> {
    const request = { ...this.#identity, max: Math.min(max, BATCH_MAX), waitMs: CLAIM_WAIT_MS };
    const { claims } = await this.#options.client.claimDeliveries(request, {
      signal,
      timeoutMs: CALL_TIMEOUT_MS,
      metadata: this.#metadata(),
    });
    return claims;
  }

  /** Until an attempt ends or its report is taken. */
  async #placeFree(): Promise<void> {
    const ends = [...this.#inFlight, this.#stopped];
    if (this.#reporting !== undefined) ends.push(this.#reporting);
    await Promise.race(ends);
  }

  #start(claim: Claim): void {
    const attempt = this.#attempt(claim, performance.now()).finally(() => {
      this.#inFlight.delete(attempt);
    });
    this.#inFlight.add(attempt);
  }

  async #attempt(claim: Claim, claimedAt: number): Promise<void> {
    const { deliveryId, claimSeq, attemptId } = claim;
    const isFresh = performance.now() - claimedAt < CLAIM_FRESH_MS;
    const result = isFresh ? await send(claim, this.#wire, this.#cutting.signal) : UNSENT;
    const report = { ...result, deliveryId, claimSeq, attemptId };
    this.#reports.push({ report, until: performance.now() + REPORT_KEPT_MS });
    this.#reporting ??= this.#reportLoop().finally(() => {
      this.#reporting = undefined;
    });
  }

  /** Until nothing is left to report. What ends meanwhile goes with the next batch. */
  async #reportLoop(): Promise<void> {
    let backoffMs = BACKOFF_MIN_MS;
    while (this.#reports.length > 0) {
      try {
        await this.#reportOnce();
        backoffMs = BACKOFF_MIN_MS;
      } catch (error) {
        this.#options.log.warn({ reason: asFault(error).reason }, 'attempts cannot be reported');
        this.#dropStale();
        if (this.#cutting.signal.aborted) return;
        await pause(backoffMs, this.#cutting.signal);
        backoffMs = Math.min(backoffMs * 2, BACKOFF_MAX_MS);
      }
    }
  }

  async #reportOnce(): Promise<void> {
    const batch = this.#reports.slice(0, BATCH_MAX);
    const reports = batch.map(({ report }) => report);
    const options = { timeoutMs: CALL_TIMEOUT_MS, metadata: this.#metadata() };
    await this.#options.client.reportAttempts({ ...this.#identity, reports }, options);
    this.#reports.splice(0, batch.length);
  }

  /** Core gave these deliveries to somebody else long ago. */
  #dropStale(): void {
    const now = performance.now();
    const stale = this.#reports.findIndex(({ until }) => until > now);
    const count = stale === -1 ? this.#reports.length : stale;
    if (count === 0) return;
    this.#reports.splice(0, count);
    this.#options.log.error({ count }, 'attempts were not reported in time');
  }

  #metadata(): Record<string, string> {
    return { authorization: `Bearer ${this.#options.token}` };
  }
}

const UNSENT = {
  outcome: 'UNSENT',
  status: 0,
  latencyMs: 0,
  error: '',
  response: Buffer.alloc(0),
  retryAfterSeconds: undefined,
} as const;

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}

/** A UUID v7: core takes the later of two instances for the living one. */
function instanceId(): string {
  const time = Date.now().toString(16).padStart(12, '0');
  const tail = randomUUID().slice(15);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${tail}`;
}
