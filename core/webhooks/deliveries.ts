/**
 * The calls of a gateway's webhook sender: claim due deliveries, and report how their attempts
 * ended. They require the gateway token. Core has the secrets and signs at the claim; a sender
 * receives URL, headers and bytes. proto/spec/webhooks.md 1, 9. The states are in
 * core/store/operations/delivery/claims.ts and attempts.ts.
 */

import { DELIVERY_BATCH_MAX, RESPONSE_KEPT_BYTES } from '../../proto/common/limits.ts';
import type { Log } from '../../proto/common/log.ts';
import type { Metrics } from '../../proto/common/metrics.ts';
import {
  AttemptReport,
  type Claim,
  type DeliveryServiceService,
} from '../../proto/gen/tabern/v1/deliveries.pb.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import type { Call } from '../../proto/rpc/local.ts';
import { inRange } from '../api/checks.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';
import { longPoll } from '../api/long-poll.ts';
import { isId } from '../common/ids.ts';
import type { Sealer } from '../common/sealer.ts';
import type { Rule } from '../delivery/disable.ts';
import { jitterOf } from '../delivery/retry-schedule.ts';
import { plainHeaders, signatureHeaders } from '../delivery/sign.ts';
import { countAttempt, countClaim } from '../maintenance/metrics.ts';
import type {
  AttemptEnd,
  Claimed,
  ClaimedRow,
  ClaimWanted,
  Sender,
} from '../store/types/deliveries.ts';
import type { Store } from '../store/types.ts';
import { secretData } from './webhooks.ts';

/** In milliseconds. Source: proto/spec/webhooks.md 1. */
const WAIT_MAX_MS = 5_000;
/**
 * In milliseconds: an attempt takes 22 s at most, so a sender that is silent for this long is lost.
 */
const LEASE_MS = 45_000;
/** Concurrent deliveries of one project. Source: proto/spec/webhooks.md 9. */
const PER_PROJECT_MAX = 32;
/** In characters. Ours: one sentence. */
const ERROR_MAX_LENGTH = 300;
const NAME_LENGTH = { min: 1, max: 128, unit: ' characters' };

type Options = {
  store: Store;
  sealer: Sealer;
  log: Log;
  now: () => number;
  /** Timestamp of signatures: receivers compare it with their own clock. */
  wall: () => number;
  /** From [0, 1), for the jitter. */
  random?: () => number;
  rule: Rule;
  /** Deliveries per second to one webhook. */
  ratePerS: number;
  metrics: Metrics;
  closing: AbortSignal;
};

/** The answer to a sender. */
type Answer = { claims: Claim[]; goneWebhookIds: string[] };
const NOTHING: Answer = { claims: [], goneWebhookIds: [] };

export function deliveryService(
  options: Options,
): Service<typeof DeliveryServiceService, MachineCaller> {
  const { store, log, now, wall, random = Math.random, rule, ratePerS, metrics, closing } = options;

  function wantedBy(sender: Sender, max: number): ClaimWanted {
    const at = now();
    const limits = { max, perProjectMax: PER_PROJECT_MAX, ratePerS };
    const signedAtS = Math.floor(wall() / 1_000);
    const leaseUntil = at + LEASE_MS;
    return { ...sender, ...limits, at, signedAtS, leaseUntil, jitter: jitterOf(random()) };
  }

  async function answered(claimed: Claimed, { signal }: Call): Promise<Answer> {
    if (!signal.aborted) {
      for (const claim of claimed.claims) countClaim(metrics, claim, wall());
      return { claims: signed(claimed, options), goneWebhookIds: claimed.gone };
    }
    // The sender disconnected during the claim: the deliveries would wait for the whole lease.
    const ends = claimed.claims.map(({ deliveryId, claimSeq, attemptId }) =>
      endOf(AttemptReport.fromPartial({ deliveryId, claimSeq, attemptId, outcome: 'UNSENT' }), 1),
    );
    if (ends.length > 0) await store.reportAttempts({ ends, at: now(), rule });
    return NOTHING;
  }

  return {
    async claimDeliveries({ max, waitMs, ...sender }, { call }) {
      checkSender(sender, max);
      inRange('waitMs', waitMs, { max: WAIT_MAX_MS });
      let looks = 0;
      const look = () => {
        looks += 1;
        return store.claimDeliveries(wantedBy(sender, max));
      };
      const claimed = await longPoll(store, 'deliveries', look, {
        call,
        closing,
        waitMs,
        isDone: ({ claims, gone }) =>
          claims.length > 0 || gone.length > 0 || (max === 0 && looks > 1),
        againMs: ({ nextDue }) => (max > 0 && nextDue !== null ? nextDue - now() : waitMs),
      });
      return answered(claimed, call);
    },

    async reportAttempts({ reports, max, ...sender }, { call }) {
      checkSender(sender, max);
      if (reports.length > DELIVERY_BATCH_MAX) {
        throw invalidField('reports', `holds at most ${DELIVERY_BATCH_MAX}.`);
      }
      const ends = reports.map((report) => endOf(report, jitterOf(random())));
      for (const end of ends) countAttempt(metrics, end);
      const next = wantedBy(sender, max);
      const { disabled, claimed } = await store.reportAttempts({ ends, at: next.at, rule, next });
      for (const webhookId of disabled) {
        const hours = rule.disableAfterMs / 3_600_000;
        log.warn({ webhookId, reason: 'failing_5d', hours }, 'a webhook was disabled');
      }
      return claimed === undefined ? NOTHING : answered(claimed, call);
    },
  };
}

function checkSender({ senderId, instanceId }: Sender, max: number): void {
  inRange('senderId', senderId.length, NAME_LENGTH);
  if (!isId(instanceId)) throw invalidField('instanceId', 'must be a UUID.');
  inRange('max', max, { max: DELIVERY_BATCH_MAX });
}

/**
 * The claims with their headers. A claim whose secrets do not open is omitted: its lease expires,
 * which counts as a failure.
 */
function signed({ claims, secrets, signedAtS }: Claimed, options: Options): Claim[] {
  const { sealer, log } = options;
  const keysOf = new Map<string, Uint8Array[]>();
  const open = (webhookId: string) =>
    (secrets[webhookId] ?? []).map(({ seq, sealed }) =>
      sealer.open(sealed, secretData(webhookId, seq)),
    );
  return claims.flatMap((row) => {
    try {
      const keys = keysOf.get(row.webhookId) ?? open(row.webhookId);
      keysOf.set(row.webhookId, keys);
      return [toClaim(row, signedAtS, keys)];
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      log.error({ err: error, webhookId: row.webhookId }, 'a delivery cannot be signed');
      return [];
    }
  });
}

function toClaim(row: ClaimedRow, timestampS: number, keys: Uint8Array[]): Claim {
  const { deliveryId, claimSeq, attemptId, webhookId, endpoint, eventId, n } = row;
  const body = Buffer.from(row.body.buffer, row.body.byteOffset, row.body.byteLength);
  const headers = {
    ...plainHeaders(n),
    ...signatureHeaders({ id: eventId, timestampS, body }, keys),
  };
  return { deliveryId, claimSeq, attemptId, webhookId, endpoint, headers, body };
}

function endOf(report: AttemptReport, jitter: number): AttemptEnd {
  const { deliveryId, claimSeq, attemptId, status, latencyMs, abortMessage } = report;
  return {
    deliveryId,
    claimSeq,
    attemptId,
    outcome: report.outcome.toLowerCase() as Lowercase<AttemptReport['outcome']>,
    status,
    latencyMs,
    abortMessage,
    error: report.error.slice(0, ERROR_MAX_LENGTH),
    // Copies the bytes: a view would transfer its whole buffer to the store's thread.
    response: Uint8Array.from(report.response.subarray(0, RESPONSE_KEPT_BYTES)),
    retryAfterS: report.retryAfterSeconds ?? null,
    jitter,
  };
}
