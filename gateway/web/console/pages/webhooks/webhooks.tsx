/** The webhooks of the project, and what was delivered to them. */
import { useState } from 'preact/hooks';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import { backlogText, type Health, p95Text, type Webhook } from '../../data/webhooks.ts';
import { FirstWebhook } from '../../parts/first.tsx';
import { lazy } from '../../parts/lazy.tsx';
import { Failure, useLoad } from '../../parts/load.tsx';
import { State } from '../../parts/state.tsx';
import { Foreign, Time } from '../../parts/text.tsx';
import { Deliveries } from './deliveries.tsx';
import { webhookState } from './states.ts';
import { Strip } from './strip.tsx';

/** A project has at most so many. */
const LIST = '/v1/webhooks?limit=100';
const NewWebhook = lazy(async () => (await import('./change.tsx')).NewWebhook);

export function WebhooksPage() {
  const [isCreating, setCreating] = useState(false);
  const { value, error, again } = useLoad<{ data: Webhook[] }>(LIST, ['WEBHOOKS']);
  return (
    <>
      <div class="head">
        <h1>Webhooks</h1>
        <span class="space" />
        <button type="button" onClick={() => setCreating(true)}>
          New webhook
        </button>
      </div>
      {isCreating && <NewWebhook close={() => setCreating(false)} />}
      {error !== undefined && <Failure error={error} again={again} />}
      {value === undefined && error === undefined && <p class="hint">Reading…</p>}
      {value?.data.length === 0 && <FirstWebhook />}
      {value !== undefined && value.data.length > 0 && (
        <>
          <Endpoints webhooks={value.data} />
          <Deliveries webhooks={value.data} />
        </>
      )}
    </>
  );
}

const HEALTH = '/console/api/v1/webhooks/health';

function Endpoints({ webhooks }: { webhooks: readonly Webhook[] }) {
  const { projectId } = route.value;
  const { value } = useLoad<{ webhooks: Health[] }>(HEALTH, ['DELIVERIES', 'WEBHOOKS']);
  const healthOf = new Map(value?.webhooks.map((one) => [one.webhookId, one]));
  return (
    <ul class="endpoints" aria-label="Webhooks">
      {webhooks.map((webhook) => (
        <Endpoint
          key={webhook.id}
          webhook={webhook}
          href={pathOf(projectId, 'webhooks', webhook.id)}
          health={healthOf.get(webhook.id)}
        />
      ))}
    </ul>
  );
}

type Props = { webhook: Webhook; href: string; health: Health | undefined };

function Endpoint({ webhook, href, health }: Props) {
  const { endpoint, eventTypes, failingSince } = webhook;
  return (
    <li>
      <State {...webhookState(webhook)} />
      <span class="endpoint">
        <a href={href}>
          <Foreign text={endpoint} max={100} />
        </a>
        {failingSince !== undefined && (
          <span class="none">
            {' '}
            failing since <Time at={failingSince} />
          </span>
        )}
      </span>
      {health !== undefined && <Strip days={health.days} />}
      <span class="figures-of">{health !== undefined && figuresText(health)}</span>
      <span class="none">
        {eventTypes.length === 1 ? eventTypes[0] : `${eventTypes.length} event types`}
      </span>
    </li>
  );
}

function figuresText(health: Health): string {
  const waiting = `${backlogText(health)} waiting`;
  return health.answers === 0 ? waiting : `95 % in ${p95Text(health)}, ${waiting}`;
}
