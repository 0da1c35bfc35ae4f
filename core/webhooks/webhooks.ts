/**
 * Webhooks: HTTPS endpoints that receive events. enabled -> disabled (five days of failures),
 * either -> deleted. This file has the rules of registration; deliveries.ts serves the senders.
 * Rules: proto/spec/webhooks.md 8, 11.
 */
import { randomBytes } from 'node:crypto';
import type { BlockList } from 'node:net';
import { must } from '../../proto/common/must.ts';
import type { Webhook, WebhookServiceService } from '../../proto/gen/tabern/v1/webhooks.pb.ts';
import { checkEndpoint } from '../../proto/network/webhook-endpoint.ts';
import { Fault, invalidField, notFound } from '../../proto/rpc/errors.ts';
import { dateOf, resourceOf } from '../api/answers.ts';
import { orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { readPage } from '../api/pagination.ts';
import { newId, pathId } from '../common/ids.ts';
import type { Sealer } from '../common/sealer.ts';
import { SECRET_BYTES, writeSecret } from '../delivery/sign.ts';
import type { WebhookRow, WrittenWebhook } from '../store/types/webhooks.ts';
import type { Store } from '../store/types.ts';
import { deliveryViews } from './delivery-list.ts';
import { listenerHandlers } from './listeners.ts';
import { redeliveryHandlers } from './redeliveries.ts';

/**
 * A closed list at registration; receivers ignore unknown types. Source: proto/spec/webhooks.md 11.
 */
export const EVENT_TYPES = [
  'functions.builds.running',
  'functions.builds.completed',
  'functions.builds.failed',
  'functions.invocations.pending',
  'functions.invocations.running',
  'functions.invocations.completed',
  'functions.invocations.failed',
  'sessions.created',
  'sessions.running',
  'sessions.ended',
  'sessions.recording.ready',
  'sessions.download.ready',
  'sessions.handoff.requested',
  'sessions.handoff.completed',
  'sessions.handoff.expired',
];

/** Ours: limits the fan-out of one event. */
export const WEBHOOKS_MAX = 100;
/** Source: proto/spec/webhooks.md 10. */
const SECRETS_MAX = 5;
/** In milliseconds: how long the previous secret also signs. Source: proto/spec/webhooks.md 10. */
const OVERLAP_MS = 24 * 3_600_000;

type Options = {
  store: Store;
  sealer: Sealer;
  now: () => number;
  /** Allowed addresses in addition to public ones. */
  allow: BlockList;
  closing: AbortSignal;
};

/** The associated data of a sealed secret. */
export function secretData(webhookId: string, seq: number): string {
  return `webhook_secrets/${webhookId}/${seq}`;
}

export function webhookService(
  options: Options,
): Service<typeof WebhookServiceService, ProjectCaller> {
  const { store, sealer, now, allow } = options;

  return {
    async createWebhook({ endpoint, eventTypes }, { projectId }) {
      const { key } = checkedEndpoint(endpoint, allow);
      const types = checkedTypes(eventTypes);
      const id = newId();
      const secret = randomBytes(SECRET_BYTES);
      const sealed = sealer.seal(secret, secretData(id, 1));
      const row = { id, projectId, endpoint, endpointKey: key, eventTypes: types, sealed };
      const made = await store.createWebhook({ ...row, at: now() }, WEBHOOKS_MAX);
      return { webhook: { ...toProto(written(made)), secret: writeSecret(secret) } };
    },

    async listWebhooks(request, { projectId }) {
      return readPage(request, (page) => store.listWebhooks({ ...page, projectId }), toProto);
    },

    async getWebhook({ id }, caller) {
      const row = await store.getWebhook(wanted(id, caller));
      return { webhook: toProto(orNotFound(row, 'Webhook', id)) };
    },

    async updateWebhook({ id, endpoint: text, eventTypes }, caller) {
      const own = wanted(id, caller);
      if (text === undefined && eventTypes.length === 0) {
        throw invalidField('endpoint', 'or `eventTypes` must be given.');
      }
      const endpoint = text === undefined ? undefined : checkedEndpoint(text, allow);
      const types = eventTypes.length === 0 ? undefined : checkedTypes(eventTypes);
      const change = { ...own, endpoint, eventTypes: types, at: now() };
      const outcome = orNotFound(await store.updateWebhook(change), 'Webhook', id);
      return { webhook: toProto(written(outcome)) };
    },

    async deleteWebhook({ id }, caller) {
      const isDeleted = await store.deleteWebhook({ ...wanted(id, caller), at: now() });
      if (!isDeleted) throw notFound('Webhook', id);
      return {};
    },

    async rotateSecret({ id, revokeImmediately }, caller) {
      return { secret: await rotate(options, wanted(id, caller), revokeImmediately) };
    },

    async enableWebhook({ id }, caller) {
      const row = await store.enableWebhook({ ...wanted(id, caller), at: now() });
      return { webhook: toProto(orNotFound(row, 'Webhook', id)) };
    },

    ...deliveryViews(store),
    ...redeliveryHandlers(store, now),
    ...listenerHandlers(options),
  };
}

/** The project's webhook. The interface has UUIDs as ids: other text is malformed. */
function wanted(id: string, { projectId }: ProjectCaller) {
  return { id: pathId('id', id), projectId };
}

/** Ours: two concurrent rotations both succeed, one after the other. */
const RACES_MAX = 4;

/**
 * The new secret in the customer's format. It is sealed for its sequence number, so a concurrent
 * rotation creates it again.
 */
async function rotate(
  { store, sealer, now }: Options,
  own: { id: string; projectId: string },
  revokeImmediately: boolean,
): Promise<string> {
  for (let races = 0; races < RACES_MAX; races += 1) {
    const seq = await store.nextSecretSeq(own);
    if (seq === undefined) break;
    const secret = randomBytes(SECRET_BYTES);
    const sealed = sealer.seal(secret, secretData(own.id, seq));
    const at = now();
    const oldExpireAt = revokeImmediately ? at : at + OVERLAP_MS;
    const added = await store.addSecret({ ...own, seq, sealed, at, oldExpireAt }, SECRETS_MAX);
    if (added === 'added') return writeSecret(secret);
    if (added === 'too-many') throw tooManySecrets();
    if (added === 'missing') break;
  }
  orNotFound(await store.getWebhook(own), 'Webhook', own.id);
  throw new Fault('CORE_UNAVAILABLE', 'Too many rotations at once.');
}

function tooManySecrets(): Fault {
  const message = `At most ${SECRETS_MAX} secrets may be live at once; revoke the earlier ones.`;
  return new Fault('TOO_MANY_SECRETS', message, { max: SECRETS_MAX });
}

function checkedEndpoint(text: string, allow: BlockList): { text: string; key: string } {
  const verdict = checkEndpoint(text, allow);
  if (verdict.ok) return { text, key: verdict.key };
  const message = `\`endpoint\` must be a public https URL: it ${verdict.problem}.`;
  throw new Fault('ENDPOINT_NOT_ALLOWED', message, { field: 'endpoint' });
}

/** Sorted, without duplicates. */
function checkedTypes(types: readonly string[]): string[] {
  if (types.length === 0) {
    const message = '`eventTypes` must name at least one event type.';
    throw new Fault('UNKNOWN_EVENT_TYPE', message, { field: 'eventTypes' });
  }
  const unknown = types.find((type) => !EVENT_TYPES.includes(type));
  if (unknown !== undefined) {
    const message = `Unknown event type "${unknown.slice(0, 100)}".`;
    throw new Fault('UNKNOWN_EVENT_TYPE', message, { field: 'eventTypes' });
  }
  return [...new Set(types)].sort();
}

function written(change: WrittenWebhook): WebhookRow {
  switch (change.outcome) {
    case 'written':
      return must(change.webhook, 'webhook');
    case 'endpoint-taken':
      throw new Fault('ENDPOINT_EXISTS', 'This endpoint is already registered.');
    case 'too-many':
      throw new Fault('TOO_MANY_WEBHOOKS', `A project has at most ${WEBHOOKS_MAX} webhooks.`, {
        max: WEBHOOKS_MAX,
      });
  }
}

function toProto(row: WebhookRow): Webhook {
  return {
    ...resourceOf(row),
    endpoint: row.endpoint,
    eventTypes: row.eventTypes,
    status: row.status === 'enabled' ? 'ENABLED' : 'DISABLED',
    disabledAt: dateOf(row.disabledAt),
    disabledReason: row.disabledReason ?? undefined,
    failingSince: dateOf(row.firstFailureAt),
  };
}
