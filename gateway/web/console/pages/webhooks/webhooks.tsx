/** The webhooks of the project, and what was delivered to them. */
import { withQuery } from '../../data/api.ts';
import { lengthText } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import type { Delivery, Webhook } from '../../data/types.ts';
import { Choose, Filters, Type } from '../../parts/filters.tsx';
import { FirstWebhook } from '../../parts/first.tsx';
import { ListPage } from '../../parts/list-page.tsx';
import { Empty, Failure, useLoad } from '../../parts/load.tsx';
import { usePagedList } from '../../parts/paged-list.tsx';
import { State, type StateName } from '../../parts/state.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Foreign, Id, Time } from '../../parts/text.tsx';

const FILTERS = ['webhookId', 'status', 'text'];
const STATES: Record<string, [StateName, string]> = {
  PENDING: ['waiting', 'Waiting'],
  IN_FLIGHT: ['running', 'Sending'],
  DELIVERED: ['done', 'Delivered'],
  EXHAUSTED: ['failed', 'Given up'],
  CANCELLED: ['failed', 'Cancelled'],
  SKIPPED: ['failed', 'Skipped'],
};
const STATUSES = Object.entries(STATES).map(([name, [, word]]): [string, string] => {
  return [name, word.toLowerCase()];
});
/** An event has one delivery for each webhook, so `id` alone does not identify a row. */
type DeliveryRow = Delivery & { eventId: string };

export function WebhooksPage() {
  const { value, error, again } = useLoad<{ data: Webhook[] }>('/v1/webhooks', ['WEBHOOKS']);
  return (
    <>
      <div class="head">
        <h1>Webhooks</h1>
      </div>
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

function Endpoints({ webhooks }: { webhooks: readonly Webhook[] }) {
  const { projectId, query } = route.value;
  return (
    <ul class="endpoints" aria-label="Webhooks">
      {webhooks.map(({ id, endpoint, status, failingSince, disabledReason, eventTypes }) => (
        <li key={id}>
          <State {...endpointState(status, failingSince)} />
          <a
            href={withQuery(pathOf(projectId, 'webhooks'), { webhookId: id })}
            aria-current={query.get('webhookId') === id ? 'true' : undefined}
          >
            <Foreign text={endpoint} max={100} />
          </a>
          <Id value={id} />
          {failingSince !== undefined && (
            <span>
              since <Time at={failingSince} />
            </span>
          )}
          <span class="none">
            {eventTypes.length === 1 ? eventTypes[0] : `${eventTypes.length} event types`}
          </span>
          {disabledReason !== undefined && <Foreign text={disabledReason} />}
        </li>
      ))}
    </ul>
  );
}

function Deliveries({ webhooks }: { webhooks: readonly Webhook[] }) {
  const { query } = route.value;
  const names = [...FILTERS, 'eventType', 'resourceId'];
  const list = usePagedList<DeliveryRow>(
    {
      path: '/console/api/v1/deliveries',
      query: Object.fromEntries(names.map((name) => [name, query.get(name) ?? undefined])),
      kind: 'DELIVERIES',
      rowsOf: (answer) => (answer['deliveries'] as Delivery[]).map(rowOf),
    },
    () => scrollY > 100,
  );
  const endpoints = webhooks.map(({ id, endpoint }): [string, string] => [
    id,
    endpoint.slice(0, 60),
  ]);
  return (
    <ListPage
      title="Deliveries"
      list={list}
      empty={<Empty title="No delivery yet." />}
      filters={
        <Filters names={FILTERS}>
          <Choose name="webhookId" label="Webhook" options={[['', 'any'], ...endpoints]} />
          <Choose name="status" label="Status" options={[['', 'any'], ...STATUSES]} />
          <Type name="text" label="Text" placeholder="id, event type or resource" />
        </Filters>
      }
    >
      <Table
        label="Deliveries"
        rows={list.rows}
        columns={COLUMNS}
        keyOf={({ id }) => id}
        hrefOf={() => undefined}
      />
    </ListPage>
  );
}

const COLUMNS: Column<DeliveryRow>[] = [
  { name: 'Status', cell: ({ status }) => <State {...deliveryState(status)} /> },
  { name: 'Event', cell: ({ eventType }) => eventType },
  { name: 'Id', cell: ({ eventId }) => <Id value={eventId} /> },
  { name: 'To', kind: 'wide', cell: ({ endpoint }) => <Foreign text={endpoint} max={100} /> },
  { name: 'Happened', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { name: 'Tries', cell: ({ tries }) => tries },
  { name: 'Last answer', cell: (delivery) => lastAnswer(delivery) },
  { name: 'Next try', kind: 'late', cell: ({ nextAttemptAt }) => <Time at={nextAttemptAt} /> },
];

function rowOf(delivery: Delivery): DeliveryRow {
  return { ...delivery, eventId: delivery.id, id: `${delivery.id} ${delivery.webhookId}` };
}

function lastAnswer({ lastStatusCode, lastOutcome, lastLatencyMs }: Delivery): string {
  if (lastOutcome === undefined) return '–';
  const what = lastStatusCode === undefined ? lastOutcome : String(lastStatusCode);
  return lastLatencyMs === undefined ? what : `${what} in ${lengthText(lastLatencyMs)}`;
}

function deliveryState(status: string): { name: StateName; word: string } {
  const [name, word] = STATES[status] ?? ['waiting', status];
  return { name, word };
}

function endpointState(status: string, failingSince: string | undefined) {
  if (status === 'DISABLED') return { name: 'waiting' as const, word: 'Disabled' };
  if (failingSince !== undefined) return { name: 'failed' as const, word: 'Failing' };
  return { name: 'done' as const, word: 'Enabled' };
}
