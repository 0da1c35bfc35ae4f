/**
 * Webhooks of the console: how their last days went, one delivery with its attempts as they were
 * sent, and the check of a request that a receiver has refused.
 */
import { RESPONSE_KEPT_BYTES } from '../../proto/common/limits.ts';
import type {
  ConsoleServiceGetDeliveryResponse_Attempt as Attempt,
  ConsoleServiceGetDeliveryResponse,
  ConsoleServiceService,
  ListWebhookHealthResponse_Health as Health,
  VerifyWebhookSignatureRequest,
  VerifyWebhookSignatureResponse,
} from '../../proto/gen/tabern/v1/console.pb.ts';
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import { dateOf } from '../api/answers.ts';
import { inRange, orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { isId, pathId } from '../common/ids.ts';
import { openRate } from '../common/rate-limit.ts';
import type { Sealer } from '../common/sealer.ts';
import { type AnswerTimes, addTimes, countOf, withinMs } from '../delivery/answer-times.ts';
import { BODY_MAX_BYTES } from '../delivery/envelope.ts';
import { plainHeaders, signatureHeaders } from '../delivery/sign.ts';
import { checkSignature, checkTime, explain, type Finding } from '../delivery/verify.ts';
import type {
  SecretRow,
  SignedAttemptRow,
  WebhookHealthRow,
  WholeDelivery,
} from '../store/types/console.ts';
import type { Store } from '../store/types.ts';
import { toAttempt } from '../webhooks/delivery-list.ts';
import { secretData } from '../webhooks/webhooks.ts';
import { toConsoleDelivery } from './deliveries.ts';
import { optionalId } from './filters.ts';

type Handlers = Service<typeof ConsoleServiceService, ProjectCaller>;
type Names = 'listWebhookHealth' | 'getDelivery' | 'verifyWebhookSignature';
type Options = {
  store: Pick<
    Store,
    | 'consoleWebhookHealth'
    | 'consoleDelivery'
    | 'consoleSecrets'
    | 'consoleOtherSecrets'
    | 'consoleSentEvent'
  >;
  sealer: Sealer;
  now: () => number;
  /** Receivers compare timestamps with their own clock. */
  wall: () => number;
};

const DAY_MS = 86_400_000;
/** Source: console.proto. */
const DAYS = 14;
/** Source: core/webhooks/webhooks.ts. */
const WEBHOOKS_MAX = 100;
/** Index entries that are counted for each of the webhooks, and for one. Source: console.proto. */
const BACKLOG_OF_EACH = 1_000;
const BACKLOG_OF_ONE = 10_000;
const SLOW_SHARE = 0.95;
/** Source: console.proto. */
const ATTEMPTS_MAX = 50;
/** Timestamps that a signature is compared with. Ours: a delivery has 8 attempts, or replays. */
const TIMES_MAX = 20;
/** Secrets of other webhooks that a signature is compared with. Ours: 100 webhooks with 5. */
const OTHERS_MAX = 500;
/** Of one project. Ours: a check may take 20 ms of core's thread; a person makes a few. */
const CHECKS = { limit: 120, periodMs: 60_000, what: 'checks of signatures' };
const CHARACTERS = { min: 1, unit: ' characters' };
/** Line breaks and tabs are shown. */
const CONTROLS = /[^\P{Cc}\n\t]/gu;

export function consoleWebhooks(options: Options): Pick<Handlers, Names> {
  const { store, now } = options;
  const checks = openRate({ ...CHECKS, now });
  return {
    async listWebhookHealth({ webhookId }, { projectId }) {
      const wanted = { projectId, webhookId: optionalId('webhookId', webhookId) };
      const today = Math.floor(now() / DAY_MS);
      const fromDay = today - DAYS + 1;
      const backlogMax = webhookId === undefined ? BACKLOG_OF_EACH : BACKLOG_OF_ONE;
      const limits = { fromDay, backlogMax, webhooksMax: WEBHOOKS_MAX };
      const rows = await store.consoleWebhookHealth({ ...wanted, ...limits });
      return { webhooks: rows.map((row) => toHealth(row, { fromDay, backlogMax })) };
    },

    async getDelivery({ id, deliveryId }, { projectId }) {
      const webhookId = pathId('id', id);
      const wanted = { projectId, webhookId, id: pathId('deliveryId', deliveryId) };
      const found = await store.consoleDelivery({ ...wanted, attemptsMax: ATTEMPTS_MAX });
      return wholeDelivery(orNotFound(found, 'Delivery', deliveryId), options);
    },

    async verifyWebhookSignature(request, { projectId }) {
      const refused = refusedOf(request);
      checks.take(projectId);
      const own = { id: pathId('id', request.id), projectId };
      const rows = orNotFound(await store.consoleSecrets(own), 'Webhook', request.id);
      const keys = keysOf(own.id, rows, options);
      const { signer, problems, signatures } = checkSignature(refused, keys);
      if (signer !== undefined) return signedBy(signer, refused.timestamp, options);
      if (problems.length > 0) return unsigned(problems);
      const others = await store.consoleOtherSecrets({ ...own, max: OTHERS_MAX });
      const otherKeys = others.flatMap((row) => {
        return keysOf(row.webhookId, [row], options).map((one) => ({ ...one, ...row }));
      });
      const eventId = refused.id.trim().toLowerCase();
      const sent = { webhookId: own.id, eventId, attemptsMax: TIMES_MAX };
      const known = isId(eventId) ? await store.consoleSentEvent(sent) : undefined;
      const findings = explain(refused, signatures, { keys, known, others: otherKeys });
      const time = checkTime(refused.timestamp, options.wall() / 1_000);
      return unsigned(time === undefined ? findings : [...findings, time]);
    },
  };
}

function toHealth(
  { webhookId, countedFrom, days, backlog }: WebhookHealthRow,
  { fromDay, backlogMax }: { fromDay: number; backlogMax: number },
): Health {
  const byDay = new Map(days.map((one) => [one.day, one]));
  const times = days.reduce<AnswerTimes>((sum, { answers }) => {
    return addTimes(sum, JSON.parse(answers) as AnswerTimes);
  }, []);
  const within = withinMs(times, SLOW_SHARE);
  return {
    webhookId,
    days: Array.from({ length: DAYS }, (_, n) => {
      const { delivered, failed, lost } = byDay.get(fromDay + n) ?? NOTHING;
      return { at: new Date((fromDay + n) * DAY_MS), delivered, failed, lost };
    }),
    answers: countOf(times),
    p95Ms: within !== undefined && Number.isFinite(within) ? within : undefined,
    backlog: Math.min(backlog, backlogMax),
    hasLargerBacklog: backlog > backlogMax,
    countedFrom: countedFrom > fromDay * DAY_MS ? new Date(countedFrom) : undefined,
  };
}
const NOTHING = { delivered: 0, failed: 0, lost: 0 };

type Key = SecretRow & { key: Uint8Array };

/** Without secrets that do not open: they sign nothing. */
function keysOf(
  webhookId: string,
  rows: readonly SecretRow[],
  { sealer }: Pick<Options, 'sealer'>,
): Key[] {
  return rows.flatMap((row) => {
    try {
      return [{ ...row, key: sealer.open(row.sealed, secretData(webhookId, row.seq)) }];
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      return [];
    }
  });
}

function wholeDelivery(
  { delivery, body, attempts, secrets }: WholeDelivery,
  options: Options,
): ConsoleServiceGetDeliveryResponse {
  const keys = new Map(keysOf(delivery.webhookId, secrets, options).map((one) => [one.seq, one]));
  const bytes = Buffer.from(body);
  return {
    delivery: toConsoleDelivery(delivery),
    body: bytes.toString(),
    attempts: attempts.map((row): Attempt => {
      const { response } = row;
      const text = response && Buffer.from(response).toString().replace(CONTROLS, '');
      return {
        attempt: { ...toAttempt(row), response: text ?? undefined },
        headers: Object.entries(headersOf(row, { id: delivery.id, body: bytes }, keys)).map(
          ([name, value]) => ({ name, value }),
        ),
        isResponseCut: (response?.length ?? 0) >= RESPONSE_KEPT_BYTES,
      };
    }),
  };
}

/** The headers are made again from what is stored: they are the same while the secrets exist. */
function headersOf(
  { n, signedAtS, signedBy }: SignedAttemptRow,
  signed: { id: string; body: Buffer },
  known: ReadonlyMap<number, Key>,
): Record<string, string> {
  const plain = { ...plainHeaders(n), 'webhook-id': signed.id };
  if (signedAtS === null || signedBy === null) return plain;
  const seqs = signedBy.split(' ').map(Number);
  const keys = seqs.flatMap((seq) => known.get(seq)?.key ?? []);
  const made = signatureHeaders({ ...signed, timestampS: signedAtS }, keys);
  const { 'webhook-signature': signature = '', ...unsignedHeaders } = made;
  const isWhole = keys.length === seqs.length;
  const all: Record<string, string> = { ...plain, ...unsignedHeaders };
  if (isWhole) all['webhook-signature'] = signature;
  return all;
}

/** Throws INVALID_FIELD. */
function refusedOf(request: VerifyWebhookSignatureRequest) {
  const { webhookId, webhookTimestamp, webhookSignature } = request;
  inRange('webhookId', webhookId.trim().length, { ...CHARACTERS, max: 256 });
  inRange('webhookTimestamp', webhookTimestamp.trim().length, { ...CHARACTERS, max: 64 });
  inRange('webhookSignature', webhookSignature.trim().length, { ...CHARACTERS, max: 4_096 });
  const body = Buffer.from(request.body);
  if (body.length > BODY_MAX_BYTES) {
    throw invalidField('body', `must have at most ${BODY_MAX_BYTES} bytes, as deliveries have.`);
  }
  return { id: webhookId, timestamp: webhookTimestamp, signature: webhookSignature, body };
}

function signedBy(
  { createdAt, expiresAt }: SecretRow,
  timestamp: string,
  { now, wall }: Options,
): VerifyWebhookSignatureResponse {
  const findings: Finding[] = [];
  if (expiresAt !== null && expiresAt <= now()) {
    const message = 'This secret has ended: it signs no more deliveries.';
    findings.push({ code: 'SECRET_ENDED', message });
  }
  const time = checkTime(timestamp, wall() / 1_000);
  if (time !== undefined) findings.push(time);
  return {
    isAccepted: findings.length === 0,
    isSigned: true,
    secretCreatedAt: new Date(createdAt),
    secretExpiresAt: dateOf(expiresAt),
    findings,
  };
}

function unsigned(findings: Finding[]): VerifyWebhookSignatureResponse {
  const none = { secretCreatedAt: undefined, secretExpiresAt: undefined };
  return { isAccepted: false, isSigned: false, ...none, findings };
}
