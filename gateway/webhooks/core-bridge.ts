/**
 * Calls core on behalf of one sender thread: first until there is a delivery for which the thread
 * is started, then each request of the thread receives core's answer or `failed`.
 */
import { randomUUID } from 'node:crypto';
import { DELIVERY_BATCH_MAX } from '../../proto/common/limits.ts';
import type { Log } from '../../proto/common/log.ts';
import { retry } from '../../proto/common/retry.ts';
import { AttemptReport } from '../../proto/gen/tabern/v1/deliveries.pb.ts';
import { asFault } from '../../proto/rpc/errors.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import type { Claimed, FromThread, ToThread } from './messages.ts';

/** In milliseconds. Source: proto/spec/webhooks.md 1. */
const CLAIM_WAIT_MS = 5_000;
const CALL_TIMEOUT_MS = 10_000;
/** In milliseconds: back-off between failed claims before the thread runs. Ours. */
const BACKOFF = { firstMs: 200, maxMs: 2_000, isRetryable: () => true };
const CLAIMING_FAILED = 'claiming deliveries from core failed';
/** In milliseconds, of the first claim. Ours: a part of the 10 s for which a claim may be sent. */
const FRESH_MS = 2_000;

export type Bridge = {
  /**
   * Claims the first due deliveries, which answer the thread's first claim if it comes soon.
   * Settles when the signal aborts.
   */
  firstDue(signal: AbortSignal): Promise<void>;
  receive(message: FromThread): void;
  /**
   * Cancels claims, lets reports finish, hands back what no thread has received. Resolves when no
   * call of this thread is left.
   */
  end(): Promise<void>;
};

type BridgeDeps = { client: Clients['deliveries']; token: string; senderId: string; log: Log };

/** Uses a new instance id: the later instance takes over the claims of earlier ones. */
export function openBridge(
  { client, token, senderId, log }: BridgeDeps,
  post: (message: ToThread) => void,
): Bridge {
  const identity = { senderId, instanceId: instanceId() };
  const options = { timeoutMs: CALL_TIMEOUT_MS, metadata: { authorization: `Bearer ${token}` } };
  const claims = new Map<number, AbortController>();
  const running = new Set<Promise<void>>();
  /** Claimed before the thread started. */
  let first: { claimed: Claimed; at: number } | undefined;

  const claim = (max: number, signal: AbortSignal): Promise<Claimed> =>
    client.claimDeliveries({ ...identity, max, waitMs: CLAIM_WAIT_MS }, { ...options, signal });

  const handBackFirst = async (): Promise<void> => {
    const { claims: unsent = [] } = first?.claimed ?? {};
    const reports = unsent.map(({ deliveryId, claimSeq, attemptId }) =>
      AttemptReport.fromPartial({ deliveryId, claimSeq, attemptId, outcome: 'UNSENT' }),
    );
    if (reports.length > 0) await client.reportAttempts({ ...identity, reports, max: 0 }, options);
    first = undefined; // not after a failure: the next call, or the end, tries again
  };
  const firstOrNext = async (max: number, signal: AbortSignal): Promise<Claimed> => {
    if (first !== undefined && performance.now() - first.at < FRESH_MS) {
      const { claimed } = first;
      first = undefined;
      return claimed;
    }
    await handBackFirst();
    return claim(max, signal);
  };

  /** Posts the answer of a call. `warning` is logged when it fails, unless it was cancelled. */
  function answer(id: number, call: Promise<Claimed>, warning: string): void {
    const ended = call
      .then((claimed) => post({ kind: 'claimed', id, claimed }))
      .catch((error: unknown) => {
        const { reason } = asFault(error);
        if (!claims.get(id)?.signal.aborted) log.warn({ reason }, warning);
        post({ kind: 'failed', id });
      })
      .finally(() => {
        claims.delete(id);
        running.delete(ended);
      });
    running.add(ended);
  }

  return {
    async firstDue(signal) {
      const onRetry = (error: unknown): void => {
        log.warn({ reason: asFault(error).reason }, CLAIMING_FAILED);
      };
      const look = () => claim(DELIVERY_BATCH_MAX, signal);
      while (first === undefined && !signal.aborted) {
        const claimed = await retry(look, { ...BACKOFF, signal, onRetry }).catch(() => undefined);
        if (claimed?.claims[0]) first = { claimed, at: performance.now() };
      }
    },
    receive(message) {
      const { kind } = message;
      if (kind === 'claim') {
        const { id, max } = message;
        const cancelled = new AbortController();
        claims.set(id, cancelled);
        answer(id, firstOrNext(max, cancelled.signal), CLAIMING_FAILED);
      } else if (kind === 'report') {
        const { id, reports, max } = message;
        const request = { ...identity, reports: reports.map(whole), max };
        const call = client.reportAttempts(request, options);
        answer(id, call, 'reporting attempts to core failed');
      } else if (kind === 'leave') {
        claims.get(message.id)?.abort();
      } else {
        const { count } = message;
        log.error({ count }, 'dropped attempt reports that core did not accept in time');
      }
    },
    async end() {
      for (const cancelled of claims.values()) cancelled.abort();
      await Promise.all(running);
      await handBackFirst().catch((error: unknown) => {
        log.warn({ reason: asFault(error).reason }, 'handing back deliveries to core failed');
      });
    },
  };
}

/** Structured cloning converts a Buffer to a Uint8Array. */
function whole(report: AttemptReport): AttemptReport {
  const { buffer, byteOffset, byteLength } = report.response;
  return { ...report, response: Buffer.from(buffer, byteOffset, byteLength) };
}

/** A UUID v7: core treats the later of two instances as the current one. */
function instanceId(): string {
  const time = Date.now().toString(16).padStart(12, '0');
  const tail = randomUUID().slice(15);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${tail}`;
}
