/** Webhooks as the console shows them: their days, one delivery with all of its attempts. */
import type {
  ConsoleDeliveryRow,
  ConsoleOps,
  SecretRow,
  SignedAttemptRow,
  WebhookDayRow,
  WebhookHealthRow,
} from '../../types/console.ts';
import { queries } from '../engine/statements.ts';
import type { Tx } from '../engine/transaction.ts';
import { webhookFinder } from '../webhooks/due.ts';
import { CONSOLE_DELIVERY, NO_ATTEMPT } from './deliveries.ts';

const SECRET = `seq, sealed, webhook_secrets.created_at AS createdAt,
  webhook_secrets.expires_at AS expiresAt`;

type Names =
  | 'consoleWebhookHealth'
  | 'consoleDelivery'
  | 'consoleSecrets'
  | 'consoleOtherSecrets'
  | 'consoleSentEvent';

export function consoleWebhookOps(tx: Tx): Pick<ConsoleOps, Names> {
  return { ...healthOps(tx), ...deliveryOps(tx), ...secretOps(tx) };
}

type Webhook = Pick<WebhookHealthRow, 'webhookId' | 'countedFrom'>;

function healthOps(tx: Tx): Pick<ConsoleOps, 'consoleWebhookHealth'> {
  const { row, rows, number } = queries(tx);
  const columns = 'id AS webhookId, COALESCE(counted_from, created_at) AS countedFrom';
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
      SELECT 1 FROM deliveries INDEXED BY deliveries_due
      WHERE webhook_id = ? AND state = 'pending' LIMIT ?)`);
  return {
    consoleWebhookHealth({ projectId, webhookId, fromDay, webhooksMax, backlogMax }) {
      const found =
        webhookId === undefined ? all(projectId, webhooksMax) : [one(webhookId, projectId)];
      return found.flatMap((webhook) => {
        if (webhook === undefined) return [];
        const { webhookId: id, countedFrom } = webhook;
        const waiting = backlog(id, backlogMax + 1);
        return [{ webhookId: id, countedFrom, days: days(id, fromDay), backlog: waiting }];
      });
    },
  };
}

type Stored = Omit<ConsoleDeliveryRow, keyof typeof NO_ATTEMPT> & { row: number; body: Uint8Array };

function deliveryOps(tx: Tx): Pick<ConsoleOps, 'consoleDelivery' | 'consoleSentEvent'> {
  const { row, rows, values } = queries(tx);
  const hasWebhook = webhookFinder(tx);
  const secrets = secretsOf(tx);
  // The unique index of (event_id, webhook_id).
  const one = row<[string, string], Stored>(`
    SELECT ${CONSOLE_DELIVERY}, deliveries.id AS row, body
    FROM events
      CROSS JOIN deliveries ON deliveries.event_id = events.id
      CROSS JOIN webhooks ON webhooks.id = deliveries.webhook_id
    WHERE events.id = ? AND deliveries.webhook_id = ?`);
  // Index attempts_by_delivery.
  const attempts = rows<[number, number], SignedAttemptRow>(`
    SELECT n, trigger, endpoint, started_at AS startedAt, ended_at AS endedAt, outcome, status,
      latency_ms AS latencyMs, error, response, signed_at AS signedAtS, signed_by AS signedBy
    FROM attempts WHERE delivery_id = ? ORDER BY n DESC LIMIT ?`);
  const sent = row<[string, string], { row: number; body: Uint8Array }>(`
    SELECT deliveries.id AS row, body
    FROM events CROSS JOIN deliveries ON deliveries.event_id = events.id
    WHERE events.id = ? AND deliveries.webhook_id = ?`);
  const times = values<[number, number], number>(`
    SELECT signed_at FROM attempts WHERE delivery_id = ? AND signed_at IS NOT NULL
    ORDER BY n DESC LIMIT ?`);
  return {
    consoleDelivery({ projectId, webhookId, id, attemptsMax }) {
      const found = hasWebhook(webhookId, projectId) ? one(id, webhookId) : undefined;
      if (found === undefined) return undefined;
      const { row: deliveryId, body, ...rest } = found;
      const newest = attempts(deliveryId, attemptsMax);
      const last = newest.find(({ endedAt }) => endedAt !== null);
      const delivery: ConsoleDeliveryRow = {
        ...rest,
        ...NO_ATTEMPT,
        lastOutcome: last?.outcome ?? null,
        lastStatusCode: last?.status ?? null,
        lastLatencyMs: last?.latencyMs ?? null,
      };
      return { delivery, body, attempts: newest, secrets: secrets(webhookId) };
    },
    consoleSentEvent({ webhookId, eventId, attemptsMax }) {
      const found = sent(eventId, webhookId);
      return found && { body: found.body, signedAtS: times(found.row, attemptsMax) };
    },
  };
}

/** At most five are valid, and those that ended are removed by the next rotation. */
function secretsOf(tx: Tx) {
  return queries(tx).rows<[string], SecretRow>(`
    SELECT ${SECRET} FROM webhook_secrets WHERE webhook_id = ? ORDER BY seq DESC`);
}

function secretOps(tx: Tx): Pick<ConsoleOps, 'consoleSecrets' | 'consoleOtherSecrets'> {
  const hasWebhook = webhookFinder(tx);
  const secrets = secretsOf(tx);
  // Index webhooks_by_project; a project has at most 100.
  const others = queries(tx).rows<[object], SecretRow & { webhookId: string; endpoint: string }>(`
    SELECT webhook_id AS webhookId, endpoint, ${SECRET}
    FROM webhooks INDEXED BY webhooks_by_project
      CROSS JOIN webhook_secrets ON webhook_id = webhooks.id
    WHERE project_id = @projectId AND status <> 'deleted' AND webhooks.id <> @id LIMIT @max`);
  return {
    consoleSecrets({ id, projectId }) {
      return hasWebhook(id, projectId) ? secrets(id) : undefined;
    },
    consoleOtherSecrets: (wanted) => others(wanted),
  };
}
