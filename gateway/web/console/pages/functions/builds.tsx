/** The builds of the project, also those that published nothing. */

import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import { Choose, Filters, SINCE, Type, useFrom } from '../../parts/filters.tsx';
import { FirstFunction } from '../../parts/first.tsx';
import { ListPage } from '../../parts/list-page.tsx';
import { usePagedList } from '../../parts/paged-list.tsx';
import { RunState } from '../../parts/state.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Foreign, Id, Length, Time } from '../../parts/text.tsx';
import type { BuildRow } from './model/types.ts';

const FILTERS = ['status', 'text', 'since'];
const STATUSES: readonly [string, string][] = [
  ['', 'any'],
  ['PENDING', 'waiting'],
  ['RUNNING', 'running'],
  ['COMPLETED', 'completed'],
  ['FAILED', 'failed'],
];

export function BuildsPage() {
  const { projectId, query } = route.value;
  const from = useFrom();
  const given = ['status', 'text'].map((name) => [name, query.get(name) ?? undefined]);
  const list = usePagedList<BuildRow>(
    {
      path: '/console/api/v1/builds',
      query: { ...Object.fromEntries(given), from },
      kind: 'BUILDS',
      rowsOf: (answer) => answer['builds'] as BuildRow[],
    },
    () => scrollY > 100,
  );
  const isFiltered = FILTERS.some((name) => query.has(name));
  return (
    <ListPage
      title="Builds"
      list={list}
      empty={isFiltered ? undefined : <FirstFunction />}
      action={<a href={pathOf(projectId, 'publish')}>Publish</a>}
      filters={
        <Filters names={FILTERS}>
          <Choose name="status" label="Status" options={STATUSES} />
          <Choose name="since" label="Accepted" options={SINCE} />
          <Type name="text" label="Text" placeholder="id or entry file" />
        </Filters>
      }
    >
      <Table
        label="Builds"
        rows={list.rows}
        columns={columnsOf(projectId)}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => pathOf(projectId, 'builds', id)}
      />
    </ListPage>
  );
}

function columnsOf(projectId: string): Column<BuildRow>[] {
  return [
    { name: 'Status', cell: ({ status }) => <RunState status={status} /> },
    { name: 'Build', cell: ({ id }) => <Id value={id} /> },
    { name: 'Entry', cell: ({ entrypoint }) => <Foreign text={entrypoint} max={60} /> },
    { name: 'Accepted', cell: ({ createdAt }) => <Time at={createdAt} /> },
    { name: 'Length', cell: ({ startedAt, endedAt }) => <Length from={startedAt} to={endedAt} /> },
    {
      name: 'Published',
      kind: 'wide',
      cell: (build) => <Outcome build={build} projectId={projectId} />,
    },
  ];
}

function Outcome({ build, projectId }: { build: BuildRow; projectId: string }) {
  const { causeCode, causeMessage, published } = build;
  if (causeCode !== undefined) {
    return <Foreign text={`${causeCode}: ${causeMessage ?? ''}`} max={160} />;
  }
  return (
    <>
      {published.map(({ functionId, name }) => (
        <a key={functionId} class="label" href={pathOf(projectId, 'functions', functionId)}>
          <Foreign text={name} max={40} />
        </a>
      ))}
    </>
  );
}
