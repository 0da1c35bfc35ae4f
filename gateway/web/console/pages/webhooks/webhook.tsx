/** One webhook: its state, how its days went, what can be done with it, its deliveries. */
import { route } from '../../data/router.ts';
import { type Health, reasonText, type Webhook } from '../../data/webhooks.ts';
import { useKeys } from '../../parts/keys.tsx';
import { Failure, useLoad } from '../../parts/load.tsx';
import { State } from '../../parts/state.tsx';
import { copy, Foreign, Id, Time } from '../../parts/text.tsx';
import { Actions } from './actions.tsx';
import { Deliveries } from './deliveries.tsx';
import { DeliveryPage } from './delivery.tsx';
import { webhookState } from './states.ts';
import { Days } from './strip.tsx';

export function WebhookPage({ id }: { id: string }) {
  const eventId = route.value.query.get('d');
  if (eventId !== null) return <DeliveryPage key={eventId} webhookId={id} eventId={eventId} />;
  return <Overview id={id} />;
}

function Overview({ id }: { id: string }) {
  const path = `/v1/webhooks/${encodeURIComponent(id)}`;
  const { value, error, again } = useLoad<Webhook>(path, ['WEBHOOKS'], id);
  useKeys([{ keys: 'c', does: "copy the webhook's id", run: () => void copy(id) }]);
  if (value === undefined) {
    if (error !== undefined) return <Failure error={error} again={again} />;
    return <p class="hint">Reading…</p>;
  }
  return (
    <>
      <header class="session-head">
        <h1>
          <Foreign text={value.endpoint} max={100} />
        </h1>
        <State {...webhookState(value)} />
        <Id value={value.id} />
      </header>
      <Facts webhook={value} />
      <Actions webhook={value} again={again} />
      <Health14 id={id} />
      <Deliveries webhookId={id} />
    </>
  );
}

function Facts({ webhook }: { webhook: Webhook }) {
  const { status, disabledAt, disabledReason, failingSince, eventTypes, createdAt } = webhook;
  return (
    <>
      {status === 'DISABLED' && (
        <p class="disabled" role="note">
          Disabled since <Time at={disabledAt} />
          {disabledReason !== undefined && `: ${reasonText(disabledReason)}`}. Events are skipped
          until it is enabled; “Recover” then sends what was missed.
        </p>
      )}
      <dl class="webhook-facts">
        {failingSince !== undefined && (
          <div>
            <dt>Failing since</dt>
            <dd>
              <Time at={failingSince} />
            </dd>
          </div>
        )}
        <div>
          <dt>Created</dt>
          <dd>
            <Time at={createdAt} />
          </dd>
        </div>
        <div>
          <dt>Event types</dt>
          <dd>
            {eventTypes.map((type) => (
              <span key={type} class="label">
                {type}
              </span>
            ))}
          </dd>
        </div>
      </dl>
    </>
  );
}

function Health14({ id }: { id: string }) {
  const path = `/console/api/v1/webhooks/health?webhookId=${encodeURIComponent(id)}`;
  const kinds = ['DELIVERIES', 'WEBHOOKS'];
  const { value, error, again } = useLoad<{ webhooks: Health[] }>(path, kinds);
  if (error !== undefined) return <Failure error={error} again={again} />;
  const health = value?.webhooks[0];
  return health === undefined ? <section class="health" /> : <Days health={health} />;
}
