/** States of webhooks, deliveries and attempts as a shape and a word. Pure. */
import type { Webhook } from '../../data/webhooks.ts';
import type { StateName } from '../../parts/state.tsx';

type State = { name: StateName; word: string };

const DELIVERIES: Record<string, [StateName, string]> = {
  PENDING: ['waiting', 'Waiting'],
  IN_FLIGHT: ['running', 'Sending'],
  DELIVERED: ['done', 'Delivered'],
  EXHAUSTED: ['failed', 'Given up'],
  CANCELLED: ['failed', 'Cancelled'],
  SKIPPED: ['failed', 'Skipped'],
};

/** For a filter. */
export const STATUSES = Object.entries(DELIVERIES).map(([name, [, word]]): [string, string] => {
  return [name, word.toLowerCase()];
});

export function deliveryState(status: string): State {
  const [name, word] = DELIVERIES[status] ?? ['waiting', status];
  return { name, word };
}

/** Whether attempts are still made. */
export function isOpen(status: string): boolean {
  return status === 'PENDING' || status === 'IN_FLIGHT';
}

export function webhookState({ status, failingSince }: Webhook): State {
  if (status === 'DISABLED') return { name: 'waiting', word: 'Disabled' };
  if (failingSince !== undefined) return { name: 'failed', word: 'Failing' };
  return { name: 'done', word: 'Enabled' };
}

export function attemptState(outcome: string | undefined): StateName {
  if (outcome === undefined) return 'running';
  return outcome === 'ok' ? 'done' : outcome === 'interrupted' ? 'waiting' : 'failed';
}
