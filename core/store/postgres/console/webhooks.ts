/** Webhooks as the console shows them: their days, one delivery with all of its attempts. */
import type {
  ConsoleDeliveryRow,
  ConsoleOps,
  SecretRow,
  SignedAttemptRow,
  WebhookDayRow,
  WebhookHealthRow,
} from '../../types/console.ts';
import { plannedAnew } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { webhookFinder } from '../webhooks/due.ts';
import { CONSOLE_DELIVERY, NO_ATTEMPT } from './deliveries.ts';

const SECRET = `seq, sealed, webhook_secrets.created_at AS "createdAt",
  webhook_secrets.expires_at AS "expiresAt"`;

type Names =
  | 'consoleWebhookHealth'
  | 'consoleDelivery'
  | 'consoleSecrets'
  | 'consoleOtherSecrets'
  | 'consoleSentEvent';

export function consoleWebhookOps(tx: Tx): InReads<Pick<ConsoleOps, Names>> {
  return { ...healthOps(tx), ...deliveryOps(tx), ...secretOps(tx) };
}

type Webhook = Pick<WebhookHealthRow, 'webhookId' | 'countedFrom'>;

function healthOps(tx: Tx): InReads<Pick<ConsoleOps, 'consoleWebhookHealth'>> {
  const { row, rows, number } = plannedAnew(tx);
  const columns = 'id AS "webhookId", COALESCE(counted_from, created_at) AS "countedFrom"';
  // Index webhooks_by_project.
  const all = rows<[string, number], Webhook>(`
    SELECT ${columns} FROM webhooks WHERE project_id = ? AND status <> 'deleted'
    ORDER BY id DESC LIMIT ?`);
  const one = row<[string, string], Webhook>(`
    SELECT ${columns} FROM webhooks WHERE id = ? AND project_id = ? AND status <> 'deleted'`);
  const days = rows<[string, number], WebhookDayRow>(`
    SELECT day, delivered, failed, lost, answers FROM webhook_days
    WHERE webhook_id = ? AND day >= ? ORDER BY day`);
  // Index deliveries_due.
  const backlog = number<[string, number]>(`
    SELECT COUNT(*) FROM (
      SELECT 1 FROM deliveries
      WHERE webhook_id = ? AND state = 'pending' LIMIT ?) AS few`);
  return {
    *consoleWebhookHealth({ projectId, webhookId, fromDay, webhooksMax, backlogMax }) {
      const found =
        webhookId === undefined
          ? yield* all(projectId, webhooksMax)
          : [yield* one(webhookId, projectId)];
      const reads = found.flatMap((webhook) => {
        if (webhook === undefined) return [];
        const id = webhook.webhookId;
        return [{ webhook, days: days(id, fromDay), backlog: backlog(id, backlogMax + 1) }];
      });
      const shown: WebhookHealthRow[] = [];
      for (const { webhook, days, backlog } of reads) {
        shown.push({ ...webhook, days: yield* days, backlog: yield* backlog });
      }
      return shown;
    },
  };
}

type Stored = Omit<ConsoleDeliveryRow, keyof typeof NO_ATTEMPT> & { row: number; body: Uint8Array };

function deliveryOps(tx: Tx): InReads<Pick<ConsoleOps, 'consoleDelivery' | 'consoleSentEvent'>> {
  const { row, rows, values } = plannedAnew(tx);
  const hasWebhook = webhookFinder(tx);
  const secrets = secretsOf(tx);
  // The unique index of (event_id, webhook_id).
  const one = row<[string, string], Stored>(`
    SELECT ${CONSOLE_DELIVERY}, deliveries.id AS row, body
    FROM events
      JOIN deliveries ON deliveries.event_id = events.id
      JOIN webhooks ON webhooks.id = deliveries.webhook_id
    WHERE events.id = ? AND deliveries.webhook_id = ?`);
  // Index attempts_by_delivery.
  const attempts = rows<[number, number], SignedAttemptRow>(`
    SELECT n, trigger, endpoint, started_at AS "startedAt", ended_at AS "endedAt", outcome, status,
      latency_ms AS "latencyMs", error, response, signed_at AS "signedAtS", signed_by AS "signedBy"
    FROM attempts WHERE delivery_id = ? ORDER BY n DESC LIMIT ?`);
  const sent = row<[string, string], { row: number; body: Uint8Array }>(`
    SELECT deliveries.id AS row, body
    FROM events JOIN deliveries ON deliveries.event_id = events.id
    WHERE events.id = ? AND deliveries.webhook_id = ?`);
  const times = values<[number, number], number>(`
    SELECT signed_at FROM attempts WHERE delivery_id = ? AND signed_at IS NOT NULL
    ORDER BY n DESC LIMIT ?`);
  return {
    *consoleDelivery({ projectId, webhookId, id, attemptsMax }) {
      const isOwn = yield* hasWebhook(webhookId, projectId);
      const found = isOwn ? yield* one(id, webhookId) : undefined;
      if (found === undefined) return undefined;
      const { row: deliveryId, body, ...rest } = found;
      const newest = yield* attempts(deliveryId, attemptsMax);
      const last = newest.find(({ endedAt }) => endedAt !== null);
      const delivery: ConsoleDeliveryRow = {
        ...rest,
        ...NO_ATTEMPT,
        lastOutcome: last?.outcome ?? null,
        lastStatusCode: last?.status ?? null,
        lastLatencyMs: last?.latencyMs ?? null,
      };
      return { delivery, body, attempts: newest, secrets: yield* secrets(webhookId) };
    },
    *consoleSentEvent({ webhookId, eventId, attemptsMax }) {
      const found = yield* sent(eventId, webhookId);
      return found && { body: found.body, signedAtS: yield* times(found.row, attemptsMax) };
    },
  };
}

/** At most five are valid, and those that ended are removed by the next rotation. */
function secretsOf(tx: Tx) {
  return plannedAnew(tx).rows<[string], SecretRow>(`
    SELECT ${SECRET} FROM webhook_secrets WHERE webhook_id = ? ORDER BY seq DESC`);
}

function secretOps(tx: Tx): InReads<Pick<ConsoleOps, 'consoleSecrets' | 'consoleOtherSecrets'>> {
  const hasWebhook = webhookFinder(tx);
  const secrets = secretsOf(tx);
  // Index webhooks_by_project; a project has at most 100.
  const others = plannedAnew(tx).rows<
    [object],
    SecretRow & { webhookId: string; endpoint: string }
  >(`
    SELECT webhook_id AS "webhookId", endpoint, ${SECRET}
    FROM webhooks
      JOIN webhook_secrets ON webhook_id = webhooks.id
    WHERE project_id = @projectId AND status <> 'deleted' AND webhooks.id <> @id LIMIT @max`);
  return {
    *consoleSecrets({ id, projectId }) {
      return (yield* hasWebhook(id, projectId)) ? yield* secrets(id) : undefined;
    },
    consoleOtherSecrets: (wanted) => others(wanted),
  };
}
