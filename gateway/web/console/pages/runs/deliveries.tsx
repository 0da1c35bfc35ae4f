/** Whether somebody heard of the run: the deliveries of its events. */
import { withQuery } from '../../data/api.ts';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import type { Delivery } from '../../data/webhooks.ts';
import { Failure, useLoad } from '../../parts/load.tsx';
import { State } from '../../parts/state.tsx';
import { Foreign, Time } from '../../parts/text.tsx';
import { deliveryState } from '../webhooks/states.ts';

const LIMIT = '20';

export function Deliveries({ id }: { id: string }) {
  const { projectId } = route.value;
  const path = withQuery('/console/api/v1/deliveries', { resourceId: id, limit: LIMIT });
  const { value, error, again } = useLoad<{ deliveries: Delivery[] }>(path, ['DELIVERIES']);
  if (error !== undefined) return <Failure error={error} again={again} />;
  if (value === undefined) return null;
  return (
    <section aria-label="Deliveries">
      <div class="head">
        <h2>Deliveries</h2>
        {value.deliveries.length > 0 && (
          <a href={withQuery(pathOf(projectId, 'webhooks'), { resourceId: id })}>with attempts</a>
        )}
      </div>
      {value.deliveries.length === 0 && <p class="hint">No webhook is subscribed to its events.</p>}
      <ul class="facts-list">
        {value.deliveries.map((delivery) => (
          <li key={`${delivery.id} ${delivery.webhookId}`}>
            <State {...deliveryState(delivery.status)} />
            <span>{delivery.eventType}</span>
            <Foreign text={delivery.endpoint} max={80} />
            <span class="fact">
              {answerOf(delivery)}
              {delivery.nextAttemptAt !== undefined && (
                <>
                  , next try <Time at={delivery.nextAttemptAt} />
                </>
              )}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function answerOf({ lastStatusCode, lastOutcome, tries }: Delivery): string {
  if (lastOutcome === undefined) return 'no try yet';
  const count = tries === 1 ? '1 try' : `${tries} tries`;
  return `${count}, last answer ${lastStatusCode ?? lastOutcome}`;
}
