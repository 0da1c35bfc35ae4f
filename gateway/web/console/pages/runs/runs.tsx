/** The runs of all functions of the project. */
import { lengthText } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import type { Run } from '../../data/types.ts';
import { Choose, Filters, SINCE, Type, useFrom } from '../../parts/filters.tsx';
import { FirstRun } from '../../parts/first.tsx';
import { ListPage } from '../../parts/list-page.tsx';
import { usePagedList } from '../../parts/paged-list.tsx';
import { RunState } from '../../parts/state.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Foreign, Id, Length, Time } from '../../parts/text.tsx';

const FILTERS = ['status', 'text', 'functionId', 'since'];
const STATUSES: readonly [string, string][] = [
  ['', 'any'],
  ['PENDING', 'waiting'],
  ['RUNNING', 'running'],
  ['COMPLETED', 'completed'],
  ['FAILED', 'failed'],
];

export function RunsPage() {
  const { projectId, query } = route.value;
  const from = useFrom();
  const given = ['status', 'text', 'functionId'].map((name) => [
    name,
    query.get(name) ?? undefined,
  ]);
  const list = usePagedList<Run>(
    {
      path: '/console/api/v1/invocations',
      query: { ...Object.fromEntries(given), from },
      kind: 'INVOCATIONS',
      rowsOf: (answer) => answer['invocations'] as Run[],
    },
    () => scrollY > 100,
  );
  const isFiltered = FILTERS.some((name) => query.has(name));
  return (
    <ListPage
      title="Runs"
      list={list}
      empty={isFiltered ? undefined : <FirstRun />}
      filters={
        <Filters names={FILTERS}>
          <Choose name="status" label="Status" options={STATUSES} />
          <Choose name="since" label="Accepted" options={SINCE} />
          <Type name="text" label="Text" placeholder="id or function" />
        </Filters>
      }
    >
      <Table
        label="Runs"
        rows={list.rows}
        columns={columnsOf(projectId)}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => pathOf(projectId, 'runs', id)}
      />
    </ListPage>
  );
}

function columnsOf(projectId: string): Column<Run>[] {
  return [
    { name: 'Status', cell: ({ status }) => <RunState status={status} /> },
    { name: 'Run', cell: ({ id }) => <Id value={id} /> },
    { name: 'Function', cell: ({ functionName }) => <Foreign text={functionName} max={60} /> },
    { name: 'Accepted', cell: ({ createdAt }) => <Time at={createdAt} /> },
    { name: 'Waited', kind: 'late', cell: (run) => waited(run) },
    {
      name: 'Length',
      cell: ({ startedAt, endedAt }) => <Length from={startedAt} to={endedAt} />,
    },
    {
      name: 'Session',
      kind: 'late',
      cell: ({ sessionId }) => <a href={pathOf(projectId, 'sessions', sessionId)}>session</a>,
    },
    {
      name: 'Cause',
      kind: 'wide',
      cell: ({ causeCode, causeMessage }) =>
        causeCode !== undefined && (
          <Foreign text={`${causeCode}: ${causeMessage ?? ''}`} max={160} />
        ),
    },
  ];
}

function waited({ createdAt, startedAt }: Run): string {
  if (startedAt === undefined) return '–';
  return lengthText(Date.parse(startedAt) - Date.parse(createdAt));
}
