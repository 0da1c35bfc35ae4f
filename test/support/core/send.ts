/** Sends to a receiver without core and without the dispatcher. */
import { readFileSync } from 'node:fs';
import { type Budget, send } from '../../../gateway/webhooks/attempt.ts';
import { openPools } from '../../../gateway/webhooks/connection-pools.ts';
import { openGuard, type Resolve } from '../../../gateway/webhooks/ssrf-guard.ts';
import type { Claim } from '../../../proto/gen/tabern/v1/deliveries.pb.ts';
import { cidrList } from '../../../proto/network/public-addresses.ts';
import { startReceiver } from '../servers/receiver.ts';

const LOOPBACK = ['127.0.0.0/8'];
/** For receivers that never respond: short time-outs. */
export const SHORT: Budget = { wholeMs: 20_000, answerMs: 300, bodyMs: 150 };
/** For receivers that respond: load causes no time-out, and an endless body is cut soon. */
export const PATIENT: Budget = { wholeMs: 60_000, answerMs: 60_000, bodyMs: 1_000 };

type Setup = {
  allow?: string[];
  isTrusted?: boolean;
  /** PEM text of a further trusted authority. */
  trust?: string;
  budget?: Budget;
  resolve?: Resolve;
};

/**
 * A receiver, and a function that sends to it with long time-outs; loopback is allowed by default.
 */
export async function bootSend(setup: Setup = {}) {
  const { allow = LOOPBACK, isTrusted = true, trust = '', budget = PATIENT, resolve } = setup;
  await using opened = new AsyncDisposableStack();
  const receiver = opened.use(await startReceiver());
  const guard = openGuard(cidrList(allow), resolve);
  const ca = isTrusted ? `${readFileSync(receiver.caPath, 'utf8')}\n${trust}` : undefined;
  const pools = opened.use(openPools(guard, ca));
  const wire = { pools, budget };
  const post = (endpoint = receiver.url, signal?: AbortSignal, own = budget) =>
    send(claimOf(endpoint), { ...wire, budget: own }, signal);
  const parts = opened.move();
  return { receiver, wire, post, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

export function claimOf(endpoint: string): Claim {
  return {
    deliveryId: 1,
    claimSeq: 1,
    attemptId: 1,
    webhookId: 'w',
    endpoint,
    headers: { 'content-type': 'application/json', 'webhook-id': 'e1', 'user-agent': 'x/1' },
    body: Buffer.from('{"id":"e1","text":"ü"}'),
  };
}
