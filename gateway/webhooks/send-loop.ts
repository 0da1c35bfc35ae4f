/**
 * Claims due deliveries, posts each and reports the outcome. running -> closing (no new claims,
 * attempts finish) -> closed. A report is retried until core accepts it. A result is lost only with
 * the thread, or when core is unreachable for a minute; the delivery is then sent again with the
 * same id. Any number of senders may run: the claim is the lock.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { DELIVERY_BATCH_MAX } from '../../proto/common/limits.ts';
import { retry } from '../../proto/common/retry.ts';
import type { AttemptReport, Claim } from '../../proto/gen/tabern/v1/deliveries.pb.ts';
import { send, type Wire } from './attempt.ts';
import type { Claimed } from './messages.ts';

/**
 * Maximum attempts in flight of one sender. Ours: eight hung endpoints could use 64
 * (proto/spec/webhooks.md 9). Their bodies use 5 MiB at most.
 */
const IN_FLIGHT_MAX = 256;
/**
 * Ended attempts without a report: beyond this core is too slow, and no new attempt starts. Ours.
 */
const REPORTS_MAX = 256;
/**
 * A commit of core costs as much as twenty deliveries in it. With that many attempts in flight,
 * this many results are batched before a report, and this many free slots before a claim, or as
 * many as there are after these milliseconds. Ours, by measurement.
 */
const GATHER_MIN = 48;
const GATHER_MS = 2;
/** In milliseconds. Core's lease expires after 45 s anyway. Source: proto/spec/webhooks.md 10. */
const REPORT_KEPT_MS = 60_000;
/** In milliseconds: back-off between failed calls, doubling between these. */
const BACKOFF = { firstMs: 200, maxMs: 2_000, isRetryable: () => true };

/** Errors of aborted attempts. */
const STOPPED = 'the sender stopped before an answer';
const DELETED = 'the webhook was deleted before an answer';

/** Calls to core. Both reject when core did not accept the call, which is then retried. */
export type Link = {
  /**
   * Waits for the first due delivery, until the signal aborts. Without free slots it returns
   * deleted webhooks, and resolves when a delivery or webhook changed.
   */
  claim(max: number, signal: AbortSignal): Promise<Claimed>;
  /** Also claims up to `max` due deliveries in the same call, without waiting. */
  report(reports: AttemptReport[], max: number): Promise<Claimed>;
  /** Receives the number of dropped reports. */
  dropped(count: number): void;
};

type Kept = { report: AttemptReport; until: number };
type Running = { webhookId: string; cut: AbortController; ended: Promise<void> };

/** Runs from its construction until end(). */
export class Sender {
  readonly #link: Link;
  readonly #wire: Wire;
  /** No new claims. */
  readonly #stopping = new AbortController();
  /** No more calls to core. */
  readonly #cutting = new AbortController();
  readonly #inFlight = new Set<Running>();
  readonly #reports: Kept[] = [];
  readonly #claiming: Promise<void>;
  #reporting: Promise<void> | undefined;
  /** Slots reserved by calls in progress. */
  #promised = 0;

  constructor(link: Link, wire: Wire) {
    this.#link = link;
    this.#wire = wire;
    this.#claiming = this.#claimLoop();
  }

  /** Stops claiming, lets attempts finish within maxMs, and reports them. */
  async end(maxMs: number): Promise<void> {
    this.#stopping.abort();
    await this.#claiming;
    const timer = setTimeout(() => this.#cut(STOPPED), maxMs);
    await Promise.all([...this.#inFlight].map(({ ended }) => ended));
    clearTimeout(timer);
    // A last report of the remaining results, in order; core releases the rest at the next start.
    this.#cutting.abort();
    await this.#reporting;
    await this.#reportRest().catch(() => undefined);
  }

  async #reportRest(): Promise<void> {
    while (this.#reports.length > 0) await this.#reportOnce();
  }

  /** Waits at core for due deliveries; with a backlog, the reports return new claims. */
  async #claimLoop(): Promise<void> {
    const { signal } = this.#stopping;
    const claim = async (): Promise<void> => {
      if (this.#free() < GATHER_MIN) await sleep(GATHER_MS);
      if (signal.aborted) return; // an unanswered call would not return deleted webhooks
      await this.#take((max) => this.#link.claim(max, signal));
    };
    while (!signal.aborted) {
      // A failure is logged by the caller, on the main thread; the last one after the abort.
      await retry(claim, { ...BACKOFF, signal }).catch(() => undefined);
    }
  }

  /** Makes a call that may fill the free slots, and starts the returned deliveries. */
  async #take(call: (max: number) => Promise<Claimed>): Promise<void> {
    const max = this.#stopping.signal.aborted ? 0 : Math.min(this.#free(), DELIVERY_BATCH_MAX);
    this.#promised += max;
    const { claims, goneWebhookIds } = await call(max).finally(() => {
      this.#promised -= max;
    });
    if (goneWebhookIds.length > 0) this.#cut(DELETED, new Set(goneWebhookIds));
    for (const claim of claims) this.#start(claim);
  }

  /** Aborts attempts in flight: all, or those for these webhooks. */
  #cut(error: string, webhookIds?: ReadonlySet<string>): void {
    for (const { webhookId, cut } of this.#inFlight) {
      if (webhookIds?.has(webhookId) ?? true) cut.abort(error);
    }
  }

  #free(): number {
    if (this.#reports.length >= REPORTS_MAX) return 0;
    return Math.max(0, IN_FLIGHT_MAX - this.#inFlight.size - this.#promised);
  }

  #start(claim: Claim): void {
    const cut = new AbortController();
    // Returned by the last reports: released without sending.
    if (this.#stopping.signal.aborted) cut.abort(STOPPED);
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

  /** Runs until no report is left. Results that arrive meanwhile are in the next batch. */
  async #reportLoop(): Promise<void> {
    const { signal } = this.#cutting;
    const report = async (): Promise<void> => {
      const isBusy = this.#inFlight.size + this.#reports.length >= GATHER_MIN;
      if (isBusy && this.#reports.length < GATHER_MIN) await sleep(GATHER_MS);
      await this.#reportOnce();
    };
    while (this.#reports.length > 0) {
      await retry(report, { ...BACKOFF, signal }).catch(() => undefined);
      if (signal.aborted) return; // the rest is reported by end()
    }
  }

  /** Reports a batch, if any is left. Results that core has no use for are dropped on a failure. */
  async #reportOnce(): Promise<void> {
    const batch = this.#reports.slice(0, DELIVERY_BATCH_MAX);
    if (batch.length === 0) return;
    const reports = batch.map(({ report }) => report);
    const call = async (max: number): Promise<Claimed> => {
      const claimed = await this.#link.report(reports, max);
      this.#reports.splice(0, batch.length);
      return claimed;
    };
    await this.#take(call).catch((error: unknown) => {
      this.#dropStale();
      throw error;
    });
  }

  /** Core has released these deliveries to another sender long ago. */
  #dropStale(): void {
    const now = performance.now();
    const fresh = this.#reports.findIndex(({ until }) => until > now);
    const count = fresh === -1 ? this.#reports.length : fresh;
    if (count === 0) return;
    this.#reports.splice(0, count);
    this.#link.dropped(count);
  }
}
