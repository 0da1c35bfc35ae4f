/**
 * Claims deliveries that are due, posts each, reports how it ended. It holds no secret and no
 * database, and reaches core by two questions only. running -> closing (claims no more, lets
 * attempts end) -> closed.
 * A report is repeated until core takes it: a result is lost only with the thread, or when core is
 * away for a minute, and then the delivery is sent again, with the same id. Any number of senders
 * may run: the claim is the lock.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AttemptReport, Claim } from '../../proto/gen/tabern/v1/deliveries.pb.ts';
import { send, type Wire } from './attempt.ts';
import type { Claimed } from './messages.ts';

/**
 * Attempts in flight of one sender. Ours: 64 would all be taken by eight hung endpoints
 * (proto/spec/webhooks.md 9). Of bodies it is 5 MiB at most.
 */
const IN_FLIGHT_MAX = 256;
/** Items of one call. Source: proto/spec/webhooks.md 1. */
const BATCH_MAX = 64;
/** Ended and not on record yet: past it core is too slow, and nothing new is begun. Ours. */
const REPORTS_MAX = 256;
/**
 * A commit of core costs as much as twenty deliveries in it: while that many attempts are in
 * flight, so many ends gather before they are reported, and so many places before a claim, or as
 * many as come in these milliseconds. Ours, by measurement.
 */
const GATHER_MIN = 48;
const GATHER_MS = 2;
/**
 * In milliseconds. Core takes the lease back after 45 s anyway. Source: proto/spec/webhooks.md 10.
 */
const REPORT_KEPT_MS = 60_000;
/** In milliseconds: the wait between calls that fail, doubling between these. */
const BACKOFF_MIN_MS = 200;
const BACKOFF_MAX_MS = 2_000;

/** The way to core. Both reject when core did not take the call: it is made again. */
export type Link = {
  /**
   * Waits for the first delivery that is due; gives up when the signal aborts. With no place free
   * it hears of deleted webhooks, and is answered when anything changed.
   */
  claim(max: number, signal: AbortSignal): Promise<Claimed>;
  /** Takes as many as `max` that are due in the same call, without waiting. */
  report(reports: AttemptReport[], max: number): Promise<Claimed>;
  /** Told how many reports were given up. */
  dropped(count: number): void;
};

export type Sender = {
  /** Claims no more, lets attempts end within maxMs, and reports them. */
  end(maxMs: number): Promise<void>;
};

/** Starts to send. */
export function startSender(link: Link, wire: Wire): Sender {
  return new Loop(link, wire);
}

type Kept = { report: AttemptReport; until: number };
type Running = { webhookId: string; cut: AbortController; ended: Promise<void> };

class Loop implements Sender {
  readonly #link: Link;
  readonly #wire: Wire;
  /** No more claims. */
  readonly #stopping = new AbortController();
  /** No more waiting for core. */
  readonly #cutting = new AbortController();
  readonly #inFlight = new Set<Running>();
  readonly #reports: Kept[] = [];
  readonly #claiming: Promise<void>;
  #reporting: Promise<void> | undefined;
  /** Places that calls under way may fill. */
  #promised = 0;

  constructor(link: Link, wire: Wire) {
    this.#link = link;
    this.#wire = wire;
    this.#claiming = this.#claimLoop();
  }

  async end(maxMs: number): Promise<void> {
    this.#stopping.abort();
    await this.#claiming;
    const timer = setTimeout(() => this.#cutAll(), maxMs);
    await Promise.all([...this.#inFlight].map(({ ended }) => ended));
    clearTimeout(timer);
    // One more try for what is left, in order of arrival; core releases the rest at the next start.
    this.#cutting.abort();
    await this.#reporting;
    if (this.#reports.length > 0) await this.#reportOnce().catch(() => undefined);
  }

  #cutAll(): void {
    for (const { cut } of this.#inFlight) cut.abort('the sender stopped before an answer');
  }

  /** Waits at core for what comes due; in a backlog it is the reports that bring it. */
  async #claimLoop(): Promise<void> {
    const { signal } = this.#stopping;
    let backoffMs = BACKOFF_MIN_MS;
    while (!signal.aborted) {
      if (this.#free() < GATHER_MIN) await sleep(GATHER_MS);
      if (signal.aborted) break; // a question to core would not hear of it any more
      try {
        await this.#take((max) => this.#link.claim(max, signal));
        backoffMs = BACKOFF_MIN_MS;
      } catch {
        // Logged where the call is made, on the main thread.
        await pause(backoffMs, signal);
        backoffMs = Math.min(backoffMs * 2, BACKOFF_MAX_MS);
      }
    }
  }

  /** Makes a call that may fill the places that are free now, and starts what it brings. */
  async #take(call: (max: number) => Promise<Claimed>): Promise<void> {
    const max = this.#stopping.signal.aborted ? 0 : Math.min(this.#free(), BATCH_MAX);
    this.#promised += max;
    const { claims, goneWebhookIds } = await call(max).finally(() => {
      this.#promised -= max;
    });
    this.#cutThoseOf(new Set(goneWebhookIds));
    for (const claim of claims) this.#start(claim);
  }

  /** What is in flight for a webhook that was deleted is of no use to anybody. */
  #cutThoseOf(gone: ReadonlySet<string>): void {
    if (gone.size === 0) return;
    for (const { webhookId, cut } of this.#inFlight) {
      if (gone.has(webhookId)) cut.abort('the webhook was deleted before an answer');
    }
  }

  #free(): number {
    if (this.#reports.length >= REPORTS_MAX) return 0;
    return Math.max(0, IN_FLIGHT_MAX - this.#inFlight.size - this.#promised);
  }

  #start(claim: Claim): void {
    const cut = new AbortController();
    // Brought by the last reports: handed back, unsent.
    if (this.#stopping.signal.aborted) cut.abort('the sender stopped before an answer');
    const ended = this.#attempt(claim, cut.signal).finally(() => this.#inFlight.delete(running));
    const running = { webhookId: claim.webhookId, cut, ended };
    this.#inFlight.add(running);
  }

  async #attempt(claim: Claim, signal: AbortSignal): Promise<void> {
    const { deliveryId, claimSeq, attemptId } = claim;
    const result = await send(claim, this.#wire, signal);
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
      const isBusy = this.#inFlight.size + this.#reports.length >= GATHER_MIN;
      if (isBusy && this.#reports.length < GATHER_MIN) await sleep(GATHER_MS);
      try {
        await this.#reportOnce();
        backoffMs = BACKOFF_MIN_MS;
      } catch {
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
    await this.#take(async (max) => {
      const claimed = await this.#link.report(reports, max);
      this.#reports.splice(0, batch.length);
      return claimed;
    });
  }

  /** Core gave these deliveries to somebody else long ago. */
  #dropStale(): void {
    const now = performance.now();
    const fresh = this.#reports.findIndex(({ until }) => until > now);
    const count = fresh === -1 ? this.#reports.length : fresh;
    if (count === 0) return;
    this.#reports.splice(0, count);
    this.#link.dropped(count);
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
