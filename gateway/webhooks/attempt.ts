/**
 * One attempt: one POST and its outcome. The status line decides; redirects are not followed.
 * Deadlines apply to the whole attempt, to the answer and to the body, whatever a hostile endpoint
 * does. proto/spec/webhooks.md 5.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { RESPONSE_KEPT_BYTES } from '../../proto/common/limits.ts';
import type { AttemptReport, Claim } from '../../proto/gen/tabern/v1/deliveries.pb.ts';
import type { Connections, Pools } from './connection-pools.ts';
import { type Failure, failureOf } from './failures.ts';

/** In milliseconds. Source: proto/spec/webhooks.md 5. */
export type Budget = { wholeMs: number; answerMs: number; bodyMs: number };
export const BUDGET: Budget = { wholeMs: 22_000, answerMs: 15_000, bodyMs: 2_000 };

/** In bytes, read at most of a response body. */
const BODY_READ_BYTES = 64 * 1024;
/**
 * In milliseconds. A kept connection that breaks within this without an answer was closed before
 * the request was written: the request is sent once more.
 */
const RACE_MS = 1_000;
/** In milliseconds since the last answer: later, no connection is kept (connection-pools.ts). */
const WARM_MS = 5_000;
/** In seconds; longer than any delay of the retry schedule. */
const RETRY_AFTER_MAX_S = 7 * 24 * 3_600;
/** In milliseconds: a claim without a connection is released, since its signature ages. */
const CLAIM_FRESH_MS = 10_000;

/** Shared: a stack would cost as much as the attempt, and the request has settled. */
const DONE = new Error('done');

export type Result = Omit<AttemptReport, 'deliveryId' | 'claimSeq' | 'attemptId'>;

export type Wire = { pools: Pools; budget?: Budget };

/**
 * Sends the claim. Never rejects. An abort of `signal` ends the attempt: UNSENT before it has a
 * connection, RESET after, with the signal's reason as its error.
 */
export async function send(claim: Claim, wire: Wire, signal?: AbortSignal): Promise<Result> {
  const { pools, budget = BUDGET } = wire;
  const startedAt = performance.now();
  if (signal?.aborted) return failed(NOT_SENT, startedAt);
  let connections: Connections;
  try {
    connections = pools.of(claim.webhookId, claim.endpoint);
  } catch (error) {
    return failed(failureOf(error, false), startedAt);
  }
  const isWarm = startedAt - connections.answeredAt < WARM_MS;
  const first = await post(claim, connections, budget, signal);
  const isRace = isWarm && first.isCut && performance.now() - startedAt < RACE_MS;
  const { result } = isRace ? await post(claim, connections, budget, signal) : first;
  if (result.status > 0) connections.answeredAt = performance.now();
  return result;
}

/** `isCut`: the connection broke before a byte of an answer. */
type Posted = { result: Result; isCut: boolean };

function post(
  claim: Claim,
  { pool, path }: Connections,
  budget: Budget,
  signal: AbortSignal | undefined,
): Promise<Posted> {
  return new Promise((resolve) => {
    const exchange = new Exchange(budget, signal, resolve);
    const { headers, body } = claim;
    try {
      pool.dispatch({ method: 'POST', path, headers, body }, exchange);
    } catch (error) {
      exchange.onResponseError(null, error);
    }
  });
}

/** waiting -> sent -> answered -> settled; any state -> settled by an error or a deadline. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #startedAt = performance.now();
  readonly #budget: Budget;
  readonly #signal: AbortSignal | undefined;
  readonly #settle: (posted: Posted) => void;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #body: Buffer[] = [];
  #bytesRead = 0;
  #controller: Dispatcher.DispatchController | undefined;
  #sentAt: number | undefined;
  #status = 0;
  #retryAfterS: number | undefined;
  #isAborting = false;
  #isSettled = false;

  constructor(budget: Budget, signal: AbortSignal | undefined, settle: (posted: Posted) => void) {
    this.#budget = budget;
    this.#signal = signal;
    this.#settle = settle;
    this.#after(budget.wholeMs, () => this.#giveUp('the attempt took too long'));
    this.#after(CLAIM_FRESH_MS, () => {
      if (this.#sentAt === undefined) this.#fail(NOT_SENT);
    });
    signal?.addEventListener('abort', this.#leave, { once: true });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isSettled || this.#signal?.aborted) {
      // The deadline passed before there was a connection: the request must not be sent.
      controller.abort(new Error('too late'));
      return;
    }
    this.#sentAt = performance.now();
    const { answerMs } = this.#budget;
    this.#after(answerMs, () => {
      if (this.#status === 0) this.#giveUp(`no answer within ${answerMs / 1_000} s`);
    });
  }

  onResponseStart(_: unknown, status: number, headers: IncomingHttpHeaders): void {
    // Informational answers come first and are ignored.
    if (status < 200) return;
    this.#status = status;
    this.#retryAfterS = retryAfterOf(headers['retry-after']);
    this.#isAborting = headers['webhook-delivery'] === 'abort-message';
    this.#after(this.#budget.bodyMs, () => this.#finish());
  }

  onResponseData(_: unknown, chunk: Buffer): void {
    const room = RESPONSE_KEPT_BYTES - Math.min(this.#bytesRead, RESPONSE_KEPT_BYTES);
    if (room > 0) this.#body.push(Buffer.from(chunk.subarray(0, room)));
    this.#bytesRead += chunk.length;
    if (this.#bytesRead > BODY_READ_BYTES) this.#finish();
  }

  onResponseEnd(): void {
    this.#controller = undefined; // it ended by itself: nothing to abort
    this.#finish();
  }

  onResponseError(_: unknown, error: unknown): void {
    const failure = failureOf(error, this.#sentAt !== undefined);
    this.#fail(failure, failure.outcome === 'RESET');
  }

  #leave = (): void => {
    const error = String(this.#signal?.reason);
    this.#fail(this.#sentAt === undefined ? NOT_SENT : { outcome: 'RESET', error });
  };

  #giveUp(error: string): void {
    this.#fail({ outcome: 'TIMEOUT', error });
  }

  /** The status line decided; later failures are ignored. */
  #fail(failure: Failure, isCut = false): void {
    if (this.#status > 0) this.#finish();
    else this.#end(failed(failure, this.#startedAt), isCut);
  }

  #finish(): void {
    const status = this.#status;
    const isOk = status >= 200 && status < 300;
    const isRedirect = status >= 300 && status < 400;
    const error = `answered ${status}${isRedirect ? ': redirects are not followed' : ''}`;
    const result: Result = {
      outcome: isOk ? 'OK' : 'HTTP',
      status,
      latencyMs: Math.round(performance.now() - (this.#sentAt ?? this.#startedAt)),
      error: isOk ? '' : error,
      // Copies the bytes: a view of a shared pool would transfer the whole pool to the other
      // thread.
      response: Buffer.from(new Uint8Array(Buffer.concat(this.#body)).buffer),
      retryAfterSeconds: this.#retryAfterS,
      abortMessage: !isOk && this.#isAborting,
    };
    this.#end(result, false);
  }

  /** Settles once. The connection is closed unless the answer was complete. */
  #end(result: Result, isCut: boolean): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#signal?.removeEventListener('abort', this.#leave);
    this.#settle({ result, isCut });
    this.#controller?.abort(DONE);
  }

  #after(ms: number, then: () => void): void {
    this.#timers.push(setTimeout(then, ms));
  }
}

/** Released: core hands the delivery out again at once, and the endpoint is not blamed. */
const NOT_SENT: Failure = { outcome: 'UNSENT', error: '' };

function failed({ outcome, error }: Failure, startedAt: number): Result {
  const latencyMs = Math.round(performance.now() - startedAt);
  const none = { response: Buffer.alloc(0), retryAfterSeconds: undefined, abortMessage: false };
  return { outcome, status: 0, latencyMs, error, ...none };
}

/** Seconds or an HTTP date (RFC 9110 10.2.3); undefined for anything else. */
export function retryAfterOf(value: unknown, now = Date.now()): number | undefined {
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  if (/^\d{1,10}$/.test(text)) return Math.min(Number(text), RETRY_AFTER_MAX_S);
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} [\d:]{8} GMT$/.test(text)) return undefined;
  const at = Date.parse(text);
  if (Number.isNaN(at)) return undefined;
  return Math.min(Math.max(0, Math.ceil((at - now) / 1_000)), RETRY_AFTER_MAX_S);
}
