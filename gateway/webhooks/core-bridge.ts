/**
 * Calls core on behalf of one sender thread: each request of the thread receives core's answer or
 * `failed`. When the thread has ended, its pending requests are dropped.
 */
import { randomUUID } from 'node:crypto';
import type { Log } from '../../proto/common/log.ts';
import type { AttemptReport } from '../../proto/gen/tabern/v1/deliveries.pb.ts';
import { asFault } from '../../proto/rpc/errors.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import type { ToThread } from './messages.ts';

/** In milliseconds. Source: proto/spec/webhooks.md 1. */
const CLAIM_WAIT_MS = 5_000;
const CALL_TIMEOUT_MS = 10_000;

export type Calls = {
  claim(id: number, max: number): void;
  report(id: number, reports: AttemptReport[], max: number): void;
  /** The claim was cancelled. */
  leave(id: number): void;
  /** Cancels claims, lets reports finish. Resolves when no call of this thread is left. */
  end(): Promise<void>;
};

type BridgeDeps = { client: Clients['deliveries']; token: string; senderId: string; log: Log };

/** Uses a new instance id: the later instance takes over the claims of earlier ones. */
export function openCalls(parts: BridgeDeps, tell: (message: ToThread) => void): Calls {
  const { client, senderId, log } = parts;
  const identity = { senderId, instanceId: instanceId() };
  const metadata = { authorization: `Bearer ${parts.token}` };
  const claims = new Map<number, AbortController>();
  const running = new Set<Promise<void>>();

  function run(call: Promise<void>): void {
    const ended = call.finally(() => running.delete(ended));
    running.add(ended);
  }

  async function claim(id: number, max: number): Promise<void> {
    const over = new AbortController();
    claims.set(id, over);
    try {
      const claimed = await client.claimDeliveries(
        { ...identity, max, waitMs: CLAIM_WAIT_MS },
        { signal: over.signal, timeoutMs: CALL_TIMEOUT_MS, metadata },
      );
      tell({ kind: 'claimed', id, claimed });
    } catch (error) {
      if (!over.signal.aborted) {
        log.warn({ reason: asFault(error).reason }, 'claiming deliveries from core failed');
      }
      tell({ kind: 'failed', id });
    } finally {
      claims.delete(id);
    }
  }

  async function report(id: number, reports: AttemptReport[], max: number): Promise<void> {
    try {
      const options = { timeoutMs: CALL_TIMEOUT_MS, metadata };
      const request = { ...identity, reports: reports.map(whole), max };
      tell({ kind: 'claimed', id, claimed: await client.reportAttempts(request, options) });
    } catch (error) {
      log.warn({ reason: asFault(error).reason }, 'reporting attempts to core failed');
      tell({ kind: 'failed', id });
    }
  }

  return {
    claim: (id, max) => run(claim(id, max)),
    report: (id, reports, max) => run(report(id, reports, max)),
    leave: (id) => claims.get(id)?.abort(),
    async end() {
      for (const over of claims.values()) over.abort();
      await Promise.all(running);
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
