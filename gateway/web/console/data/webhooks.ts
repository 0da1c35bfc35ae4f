/** Webhooks and their deliveries as JSON, and what a person reads about them. Pure. */
import { lengthText } from './format.ts';

/** GET /v1/webhooks/{id}. */
export type Webhook = {
  id: string;
  endpoint: string;
  eventTypes: string[];
  createdAt: string;
  status: 'ENABLED' | 'DISABLED';
  disabledAt?: string;
  disabledReason?: string;
  failingSince?: string;
};
export type Delivery = {
  id: string;
  webhookId: string;
  endpoint: string;
  eventType: string;
  resourceId: string;
  status: string;
  reason?: string;
  tries: number;
  createdAt: string;
  nextAttemptAt?: string;
  endedAt?: string;
  lastOutcome?: string;
  lastStatusCode?: number;
  lastLatencyMs?: number;
};
export type Attempt = {
  number: number;
  trigger: string;
  endpoint: string;
  startedAt: string;
  endedAt?: string;
  outcome?: string;
  statusCode?: number;
  latencyMs?: number;
  error?: string;
  response?: string;
};
/** GET /console/api/v1/webhooks/{id}/deliveries/{delivery}. */
export type SentAttempt = {
  attempt: Attempt;
  headers: { name: string; value: string }[];
  isResponseCut: boolean;
};
export type WholeDelivery = { delivery: Delivery; body: string; attempts: SentAttempt[] };

/** A day in UTC. */
export type Day = { at: string; delivered: number; failed: number; lost: number };
/** GET /console/api/v1/webhooks/health. */
export type Health = {
  webhookId: string;
  days: Day[];
  answers: number;
  p95Ms?: number;
  backlog: number;
  hasLargerBacklog: boolean;
  countedFrom?: string;
};

/** POST /console/api/v1/webhooks/{id}/verify. */
export type Verified = {
  isAccepted: boolean;
  isSigned: boolean;
  secretCreatedAt?: string;
  secretExpiresAt?: string;
  findings: { code: string; message: string }[];
};

/** The event types that a webhook may subscribe to. */
export const EVENT_TYPES = [
  'functions.invocations.completed',
  'functions.invocations.failed',
  'functions.invocations.running',
  'functions.invocations.pending',
  'functions.builds.completed',
  'functions.builds.failed',
  'functions.builds.running',
  'sessions.created',
  'sessions.running',
  'sessions.ended',
  'sessions.recording.ready',
  'sessions.download.ready',
  'sessions.handoff.requested',
  'sessions.handoff.completed',
  'sessions.handoff.expired',
];

type DayState = 'none' | 'done' | 'waiting' | 'failed';
const WORDS: Record<DayState, string> = {
  none: 'nothing sent',
  done: 'all delivered',
  waiting: 'attempts failed',
  failed: 'deliveries lost',
};

/** How a day went, as a state and as words. */
export function dayState({ delivered, failed, lost }: Day): { name: DayState; word: string } {
  const name =
    lost > 0 ? 'failed' : failed > 0 ? 'waiting' : delivered > 0 ? 'done' : ('none' as const);
  return { name, word: WORDS[name] };
}

/** `12 Nov`. */
export function dayText(at: string): string {
  return new Date(at).toLocaleDateString('en-GB', {
    day: 'numeric',
    month: 'short',
    timeZone: 'UTC',
  });
}

/** `12 Nov: attempts failed. 40 delivered, 2 attempts failed, 0 lost`. */
export function daySentence(day: Day): string {
  const { delivered, failed, lost } = day;
  const counts = `${delivered} delivered, ${failed} attempts failed, ${lost} lost`;
  return `${dayText(day.at)}: ${dayState(day).word}. ${counts}`;
}

/** All days in one sentence. */
export function daysSentence(days: readonly Day[]): string {
  const sum = { at: '', delivered: 0, failed: 0, lost: 0 };
  for (const { delivered, failed, lost } of days) {
    sum.delivered += delivered;
    sum.failed += failed;
    sum.lost += lost;
  }
  const bad = days.filter((one) => one.failed > 0 || one.lost > 0).map(({ at }) => dayText(at));
  const where = bad.length === 0 ? '' : `; failures on ${bad.join(', ')}`;
  const { delivered, failed, lost } = sum;
  const counts = `${delivered} delivered, ${failed} attempts failed, ${lost} lost`;
  return `${days.length} days: ${counts}${where}`;
}

/** How long answers take; `–` without answers. */
export function p95Text({ answers, p95Ms }: Health): string {
  if (answers === 0) return '–';
  return p95Ms === undefined ? 'more than 15 s' : lengthText(p95Ms);
}

/** How many deliveries wait. */
export function backlogText({ backlog, hasLargerBacklog }: Health): string {
  return hasLargerBacklog ? `more than ${backlog}` : String(backlog);
}

const OUTCOMES: Record<string, string> = {
  timeout: 'no answer in time',
  dns: 'name not resolved',
  connect: 'no connection',
  tls: 'no valid certificate',
  blocked: 'address not allowed',
  reset: 'connection closed',
  protocol: 'no valid HTTP',
  interrupted: 'interrupted',
};

/** The answer of an attempt: its status, or why there is none. */
export function answerText(outcome: string | undefined, statusCode: number | undefined): string {
  if (outcome === undefined) return 'sending';
  return statusCode === undefined ? (OUTCOMES[outcome] ?? outcome) : String(statusCode);
}

const REASONS: Record<string, string> = {
  failing_5d: 'five days of failures without a success',
  endpoint_disabled: 'the webhook was disabled',
  webhook_deleted: 'the webhook was deleted',
  unsubscribed: 'the webhook no longer subscribes to this event type',
  attempts_failed: 'all attempts failed',
  aborted_by_receiver: 'the receiver asked for no further attempt',
  interrupted: 'the service ended during each attempt',
  backlog: 'too many deliveries were waiting',
};

/** Why a webhook was disabled, or a delivery not delivered. */
export function reasonText(reason: string): string {
  return REASONS[reason] ?? reason;
}
