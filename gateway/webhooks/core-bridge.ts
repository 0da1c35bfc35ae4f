/**
 * The calls to core that one sender's thread asks for, in its name: each is answered once, by what
 * core said or by `failed`. When the thread is gone, what it still asks is left.
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
  /** Nobody waits for that claim any more. */
  leave(id: number): void;
  /**
   * Leaves claims, lets reports end. Resolves when core does nothing more in this thread's name.
   */
  end(): Promise<void>;
};

type Parts = { client: Clients['deliveries']; token: string; senderId: string; log: Log };

/** Takes a name of its own at core: the later instance takes over what an earlier one held. */
export function openCalls(parts: Parts, tell: (message: ToThread) => void): Calls {
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
        log.warn({ reason: asFault(error).reason }, 'deliveries cannot be claimed');
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
      log.warn({ reason: asFault(error).reason }, 'attempts cannot be reported');
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

/** A message between threads makes a Uint8Array of a Buffer. */
function whole(report: AttemptReport): AttemptReport {
  const { buffer, byteOffset, byteLength } = report.response;
  return { ...report, response: Buffer.from(buffer, byteOffset, byteLength) };
}

/** A UUID v7: core takes the later of two instances for the living one. */
function instanceId(): string {
  const time = Date.now().toString(16).padStart(12, '0');
  const tail = randomUUID().slice(15);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${tail}`;
}
