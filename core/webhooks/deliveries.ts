/**
 * RPCs of senders: claim due deliveries with their signatures; report how attempts ended. Requires
 * the gateway token. Core has the secrets and signs at the claim; a sender receives URL, headers
 * and bytes. proto/spec/webhooks.md 1, 9. The states are in
 * core/store/operations/delivery/claims.ts and attempts.ts.
 */

import { DELIVERY_BATCH_MAX, RESPONSE_KEPT_BYTES } from '../../proto/common/limits.ts';
import type { Log } from '../../proto/common/log.ts';
import { type Metrics, NO_METRICS } from '../../proto/common/metrics.ts';
import type {
  AttemptReport,
  Claim,
  DeliveryServiceService,
} from '../../proto/gen/tabern/v1/deliveries.pb.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';
import { longPoll } from '../api/long-poll.ts';
import { isId } from '../common/ids.ts';
import type { Sealer } from '../common/sealer.ts';
import { FIVE_DAYS, type Rule } from '../delivery/disable.ts';
import { jitterOf } from '../delivery/retry-schedule.ts';
import { signatureHeaders } from '../delivery/sign.ts';
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
const NAME_MAX_LENGTH = 128;
const USER_AGENT = 'tabern-webhooks/1';

type Options = {
  store: Store;
  sealer: Sealer;
  log: Log;
  now: () => number;
  /** Timestamp of signatures: receivers compare it with their own clock. */
  wall?: () => number;
  /** From [0, 1), for the jitter. */
  random?: () => number;
  rule?: Rule;
  /** Deliveries per second to one webhook. */
  ratePerS: number;
  metrics?: Metrics;
  /** Aborts when core closes: waiting claims are answered at once. */
  closing?: AbortSignal;
};

/** The answer to a sender. */
type Answer = { claims: Claim[]; goneWebhookIds: string[] };
const NOTHING: Answer = { claims: [], goneWebhookIds: [] };

export function deliveryService(
  options: Options,
): Service<typeof DeliveryServiceService, MachineCaller> {
  const { store, log, now } = options;
  const { closing = new AbortController().signal } = options;
  const { random = Math.random, rule = FIVE_DAYS, ratePerS } = options;
  const { metrics = NO_METRICS, wall = now } = options;

  function wantedBy(sender: Sender, max: number): ClaimWanted {
    const at = now();
    const leaseUntil = at + LEASE_MS;
    const jitter = jitterOf(random());
    return {
      ...sender,
      max,
      perProjectMax: PER_PROJECT_MAX,
      ratePerS,
      at,
      leaseUntil,
      jitter,
    };
  }

  /** The sender disconnected during the claim and would hold them for the whole lease. */
  async function handedBack(claims: readonly ClaimedRow[]): Promise<Answer> {
    if (claims.length === 0) return NOTHING;
    const ends = claims.map(({ deliveryId, claimSeq, attemptId }) => ({
      deliveryId,
      claimSeq,
      attemptId,
      outcome: 'unsent' as const,
      status: 0,
      latencyMs: 0,
      error: '',
      response: Buffer.alloc(0),
      retryAfterS: null,
      abortMessage: false,
      jitter: 1,
    }));
    await store.reportAttempts({ ends, at: now(), rule });
    return NOTHING;
  }

  function answered(claimed: Claimed): Answer {
    for (const claim of claimed.claims) countClaim(metrics, claim, wall());
    return { claims: signed(claimed, options), goneWebhookIds: claimed.gone };
  }

  return {
    async claimDeliveries(request, { call }) {
      const { senderId, instanceId, max, waitMs } = checkedClaim(request);
      let looks = 0;
      const look = () => {
        looks += 1;
        return store.claimDeliveries(wantedBy({ senderId, instanceId }, max));
      };
      const claimed = await longPoll(store, 'deliveries', look, {
        until: performance.now() + waitMs,
        isDone: ({ claims, gone }) =>
          claims.length > 0 || gone.length > 0 || (max === 0 && looks > 1),
        signal: AbortSignal.any([call.signal, closing]),
        againMs: ({ nextDue }) => (max > 0 && nextDue !== null ? nextDue - now() : waitMs),
      });
      // Nothing is claimed for a sender that disconnected.
      return call.signal.aborted ? handedBack(claimed.claims) : answered(claimed);
    },

    async reportAttempts({ senderId, instanceId, reports, max }, { call }) {
      checkSender(senderId, instanceId);
      if (reports.length > DELIVERY_BATCH_MAX)
        throw invalidField('reports', `holds at most ${DELIVERY_BATCH_MAX}.`);
      if (max > DELIVERY_BATCH_MAX)
        throw invalidField('max', `must be 0 to ${DELIVERY_BATCH_MAX}.`);
      const ends = reports.map((report) => endOf(report, jitterOf(random())));
      for (const end of ends) countAttempt(metrics, end);
      const next = wantedBy({ senderId, instanceId }, max);
      const { disabled, claimed } = await store.reportAttempts({ ends, at: next.at, rule, next });
      for (const webhookId of disabled) {
        const hours = rule.disableAfterMs / 3_600_000;
        log.warn({ webhookId, reason: 'failing_5d', hours }, 'a webhook was disabled');
      }
      if (claimed === undefined) return NOTHING;
      return call.signal.aborted ? handedBack(claimed.claims) : answered(claimed);
    },
  };
}

function checkedClaim<
  R extends { senderId: string; instanceId: string; max: number; waitMs: number },
>(request: R): R {
  checkSender(request.senderId, request.instanceId);
  if (request.max > DELIVERY_BATCH_MAX)
    throw invalidField('max', `must be 0 to ${DELIVERY_BATCH_MAX}.`);
  if (request.waitMs > WAIT_MAX_MS) throw invalidField('waitMs', `must be 0 to ${WAIT_MAX_MS}.`);
  return request;
}

function checkSender(senderId: string, instanceId: string): void {
  if (senderId === '' || senderId.length > NAME_MAX_LENGTH) {
    throw invalidField('senderId', `must be 1 to ${NAME_MAX_LENGTH} characters.`);
  }
  if (!isId(instanceId)) throw invalidField('instanceId', 'must be a UUID.');
}

/**
 * The claims with their headers. A claim whose secrets do not open is omitted: its lease expires,
 * which counts as a failure.
 */
function signed({ claims, secrets }: Claimed, options: Options): Claim[] {
  const { sealer, log, now, wall = now } = options;
  const timestampS = Math.floor(wall() / 1_000);
  const keysOf = new Map<string, Uint8Array[]>();
  const keys = (webhookId: string) => {
    const known = keysOf.get(webhookId);
    if (known) return known;
    const opened = (secrets[webhookId] ?? []).map(({ seq, sealed }) =>
      sealer.open(sealed, secretData(webhookId, seq)),
    );
    keysOf.set(webhookId, opened);
    return opened;
  };
  return claims.flatMap((row) => {
    try {
      return [toClaim(row, timestampS, keys(row.webhookId))];
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
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    'x-svc-webhook-attempt': String(n),
    ...signatureHeaders({ id: eventId, timestampS, body }, keys),
  };
  return { deliveryId, claimSeq, attemptId, webhookId, endpoint, headers, body };
}

const OUTCOMES = {
  UNSENT: 'unsent',
  OK: 'ok',
  HTTP: 'http',
  TIMEOUT: 'timeout',
  DNS: 'dns',
  CONNECT: 'connect',
  TLS: 'tls',
  BLOCKED: 'blocked',
  RESET: 'reset',
  PROTOCOL: 'protocol',
} as const satisfies Record<AttemptReport['outcome'], AttemptEnd['outcome']>;

function endOf(report: AttemptReport, jitter: number): AttemptEnd {
  const { deliveryId, claimSeq, attemptId, status, latencyMs, abortMessage } = report;
  return {
    deliveryId,
    claimSeq,
    attemptId,
    outcome: OUTCOMES[report.outcome],
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
