/** The list of deliveries: of a project, or of one webhook. */
import { withQuery } from '../../data/api.ts';
import { lengthText } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import { answerText, type Delivery, dayText, type Webhook } from '../../data/webhooks.ts';
import { Choose, Filters, Type } from '../../parts/filters.tsx';
import { ListPage } from '../../parts/list-page.tsx';
import { Empty } from '../../parts/load.tsx';
import { usePagedList } from '../../parts/paged-list.tsx';
import { State } from '../../parts/state.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Foreign, Id, Time } from '../../parts/text.tsx';
import { deliveryState, STATUSES } from './states.ts';

const DAY_MS = 86_400_000;
const FILTERS = ['webhookId', 'status', 'text', 'day', 'eventType', 'resourceId'];
/** An event has one delivery for each webhook, so `id` alone does not identify a row. */
type Row = Delivery & { eventId: string };

type Props = {
  /** The webhooks of a filter. */
  webhooks?: readonly Webhook[];
  /** Only deliveries to this one. */
  webhookId?: string;
};

export function Deliveries({ webhooks, webhookId }: Props) {
  const { projectId, query } = route.value;
  const asked = (name: string) => query.get(name) ?? undefined;
  const list = usePagedList<Row>(
    {
      path: '/console/api/v1/deliveries',
      query: {
        webhookId: webhookId ?? asked('webhookId'),
        status: asked('status'),
        text: asked('text'),
        eventType: asked('eventType'),
        resourceId: asked('resourceId'),
        ...rangeOf(asked('day')),
      },
      kind: 'DELIVERIES',
      rowsOf: (answer) => (answer['deliveries'] as Delivery[]).map(rowOf),
    },
    () => scrollY > 100,
  );
  const isFiltered = FILTERS.some((name) => query.has(name));
  return (
    <ListPage
      title="Deliveries"
      list={list}
      empty={isFiltered ? undefined : <Empty title="No delivery yet." />}
      filters={<DeliveryFilters webhooks={webhooks} day={asked('day')} />}
    >
      <Table
        label="Deliveries"
        rows={list.rows}
        columns={webhookId === undefined ? COLUMNS : COLUMNS.filter(({ name }) => name !== 'To')}
        keyOf={({ id }) => id}
        hrefOf={(row) => deliveryHref(projectId, row.webhookId, row.eventId)}
      />
    </ListPage>
  );
}

/** The page of one delivery. */
export function deliveryHref(projectId: string, webhookId: string, eventId: string): string {
  return withQuery(pathOf(projectId, 'webhooks', webhookId), { d: eventId });
}

type FilterProps = { webhooks: Props['webhooks'] | undefined; day: string | undefined };

function DeliveryFilters({ webhooks, day }: FilterProps) {
  const endpoints = (webhooks ?? []).map(({ id, endpoint }): [string, string] => {
    return [id, endpoint.slice(0, 60)];
  });
  const isDay = day !== undefined && rangeOf(day).from !== undefined;
  return (
    <Filters names={FILTERS}>
      {webhooks !== undefined && (
        <Choose name="webhookId" label="Webhook" options={[['', 'any'], ...endpoints]} />
      )}
      <Choose name="status" label="Status" options={[['', 'any'], ...STATUSES]} />
      <Type name="text" label="Text" placeholder="id, event type or resource" />
      {isDay && <span class="fact">events of {dayText(day)} (UTC)</span>}
    </Filters>
  );
}

const COLUMNS: Column<Row>[] = [
  { name: 'Status', cell: ({ status }) => <State {...deliveryState(status)} /> },
  { name: 'Event', cell: ({ eventType }) => eventType },
  { name: 'Id', cell: ({ eventId }) => <Id value={eventId} /> },
  { name: 'To', kind: 'wide', cell: ({ endpoint }) => <Foreign text={endpoint} max={100} /> },
  { name: 'Happened', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { name: 'Tries', cell: ({ tries }) => tries },
  { name: 'Last answer', cell: (delivery) => lastAnswer(delivery) },
  { name: 'Next try', kind: 'late', cell: ({ nextAttemptAt }) => <Time at={nextAttemptAt} /> },
];

function rowOf(delivery: Delivery): Row {
  return { ...delivery, eventId: delivery.id, id: `${delivery.id} ${delivery.webhookId}` };
}

function lastAnswer({ lastStatusCode, lastOutcome, lastLatencyMs }: Delivery): string {
  if (lastOutcome === undefined) return '–';
  const what = answerText(lastOutcome, lastStatusCode);
  return lastLatencyMs === undefined ? what : `${what} in ${lengthText(lastLatencyMs)}`;
}

/** Of a day in UTC, such as 2026-11-24; any other text is no filter. */
function rangeOf(day: string | undefined): { from?: string; to?: string } {
  const at = /^\d{4}-\d\d-\d\d$/.test(day ?? '') ? Date.parse(`${day}T00:00:00Z`) : Number.NaN;
  if (Number.isNaN(at)) return {};
  return { from: new Date(at).toISOString(), to: new Date(at + DAY_MS).toISOString() };
}
