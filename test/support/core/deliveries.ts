/**
 * Webhooks and deliveries on one bare store, with a clock that the test moves, for the tests of
 * both.
 */

import { newId } from '../../../core/common/ids.ts';
import { sealerOf } from '../../../core/common/sealer.ts';
import { readCoreConfig } from '../../../core/config.ts';
import { deliveryService } from '../../../core/webhooks/deliveries.ts';
import { webhookService } from '../../../core/webhooks/webhooks.ts';
import { openLog } from '../../../proto/common/log.ts';
import { NO_METRICS } from '../../../proto/common/metrics.ts';
import { must } from '../../../proto/common/must.ts';
import type { AttemptReport, Claim } from '../../../proto/gen/tabern/v1/deliveries.pb.ts';
import { cidrList } from '../../../proto/network/public-addresses.ts';
import { testClock } from '../clock.ts';
import { bareStore, callerOf } from './bare-store.ts';

export const HOUR = 3_600_000;
export const TYPE = 'functions.invocations.completed';
const log = openLog({ role: 'test', level: 'silent' });
/** Options of the services that are the same in most tests. */
export const REST = {
  rule: readCoreConfig({}).webhookRule,
  ratePerS: 50,
  metrics: NO_METRICS,
  closing: new AbortController().signal,
};

/**
 * Both services on one store; the jitter is 1. The clock starts at the real time, because
 * signatures contain it.
 */
export function bootDeliveries(allow = cidrList([])) {
  const bare = bareStore();
  const clock = testClock(Date.now());
  const sealer = sealerOf(Buffer.alloc(32, 1));
  const { store, projectId } = bare;
  const parts = { store, sealer, now: clock.now };
  const webhooks = webhookService({ ...parts, ...REST, allow });
  const service = deliveryService({ ...parts, ...REST, wall: clock.now, log, random: () => 0.5 });
  const caller = callerOf(projectId);
  const sender = { senderId: 'one', instanceId: newId() };
  const addWebhook = async (endpoint = 'https://example.com/') => {
    const made = await webhooks.createWebhook({ endpoint, eventTypes: [TYPE] }, caller);
    return must(made.webhook, 'webhook');
  };
  const emit = (data: Record<string, unknown> = {}, resourceId = newId()) =>
    bare.emit({ type: TYPE, resourceId, projectId, data, at: clock.now() });
  const claim = async (from = sender, max = 64, waitMs = 0) =>
    (await service.claimDeliveries({ ...from, max, waitMs }, caller)).claims;
  const report = (ends: [Claim, Partial<AttemptReport>][], from = sender, max = 0) => {
    const reports = ends.map(([claimed, end]) => reportOf(claimed, end));
    return service.reportAttempts({ ...from, reports, max }, caller);
  };
  const states = () => bare.rows('SELECT state, reason, due, tries FROM deliveries ORDER BY id');
  const dispose = () => bare[Symbol.asyncDispose]();
  return {
    ...bare,
    parts,
    bare,
    clock,
    webhooks,
    service,
    caller,
    sender,
    addWebhook,
    emit,
    claim,
    report,
    states,
    [Symbol.asyncDispose]: dispose,
  };
}

function reportOf(claim: Claim, end: Partial<AttemptReport>): AttemptReport {
  const { deliveryId, claimSeq, attemptId } = claim;
  return {
    deliveryId,
    claimSeq,
    attemptId,
    outcome: 'HTTP',
    status: 500,
    latencyMs: 12,
    error: 'answered 500',
    response: Buffer.from('oops'),
    retryAfterSeconds: undefined,
    abortMessage: false,
    ...end,
  };
}

export const OK = { outcome: 'OK', status: 204, error: '' } as const;
/** The only member of a list. */
export function only<T>(list: readonly T[]): T {
  if (list.length !== 1) throw new Error(`${list.length} where one was expected`);
  return must(list[0], 'one');
}
