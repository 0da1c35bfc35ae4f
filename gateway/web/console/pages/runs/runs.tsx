/** The runs of all functions of the project. */
import { useState } from 'preact/hooks';
import { lengthText } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import type { Run } from '../../data/types.ts';
import { Choose, Filters, SINCE, Type, useFrom } from '../../parts/filters.tsx';
import { FirstRun } from '../../parts/first.tsx';
import { lazy } from '../../parts/lazy.tsx';
import { ListPage } from '../../parts/list-page.tsx';
import { useLoad } from '../../parts/load.tsx';
import { usePagedList } from '../../parts/paged-list.tsx';
import { RunState } from '../../parts/state.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Foreign, Id, Length, Time } from '../../parts/text.tsx';
import type { FunctionPage } from '../functions/model/types.ts';
import { cancelRuns, isOpenRun } from './cancel.ts';

const FILTERS = ['status', 'text', 'functionId', 'since'];
const STATUSES: readonly [string, string][] = [
  ['', 'any'],
  ['PENDING', 'waiting'],
  ['RUNNING', 'running'],
  ['COMPLETED', 'completed'],
  ['FAILED', 'failed'],
];

/** Loaded when it is opened: it brings the form of params with it. */
const RunAgainById = lazy(async () => (await import('./run-again.tsx')).RunAgainById);

export function RunsPage() {
  const { projectId, query } = route.value;
  const from = useFrom();
  const [again, setAgain] = useState<string>();
  const names = ['status', 'text', 'functionId'];
  const given = names.map((name) => [name, query.get(name) ?? undefined]);
  const list = usePagedList<Run>(
    {
      path: '/console/api/v1/invocations',
      query: { ...Object.fromEntries(given), from },
      kind: 'INVOCATIONS',
      rowsOf: (answer) => answer['invocations'] as Run[],
    },
    () => scrollY > 100,
  );
  const { chosen, cancel } = useChosen(list.rows);
  const isFiltered = FILTERS.some((name) => query.has(name));
  return (
    <>
      <ListPage
        title="Runs"
        list={list}
        empty={isFiltered ? undefined : <FirstRun />}
        filters={<RunFilters />}
        action={<CancelChosen ids={chosen.ids} cancel={cancel} />}
      >
        <Table
          label="Runs"
          rows={list.rows}
          columns={columnsOf(projectId)}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => pathOf(projectId, 'runs', id)}
          chosen={chosen}
          keys={(row) => [
            { keys: 'r', does: 'run again', run: () => setAgain(row.id) },
            {
              keys: 'Delete',
              does: 'cancel the chosen runs or the row',
              run: () => cancel(chosen.ids.size > 0 ? [...chosen.ids] : [row.id]),
            },
          ]}
        />
      </ListPage>
      {again !== undefined && (
        <RunAgainById key={again} id={again} close={() => setAgain(undefined)} />
      )}
    </>
  );
}

type Cancel = { ids: ReadonlySet<string>; cancel(ids: readonly string[]): void };

function CancelChosen({ ids, cancel }: Cancel) {
  if (ids.size === 0) return null;
  return (
    <button type="button" class="danger" onClick={() => cancel([...ids])}>
      Cancel {ids.size} chosen
    </button>
  );
}

function RunFilters() {
  const { value } = useLoad<FunctionPage>('/console/api/v1/functions?limit=200', ['FUNCTIONS']);
  const functions = (value?.functions ?? []).map(({ id, name }): [string, string] => {
    return [id, name.slice(0, 60)];
  });
  const chosen = route.value.query.get('functionId');
  const isOther = chosen !== null && functions.every(([id]) => id !== chosen);
  const other: [string, string][] = isOther ? [[chosen, chosen]] : [];
  return (
    <Filters names={FILTERS}>
      <Choose name="status" label="Status" options={STATUSES} />
      <Choose name="functionId" label="Function" options={[['', 'any'], ...other, ...functions]} />
      <Choose name="since" label="Accepted" options={SINCE} />
      <Type name="text" label="Text" placeholder="id or function" />
    </Filters>
  );
}

function useChosen(rows: readonly Run[]) {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const isFree = (run: Run) => isOpenRun(run);
  const open = new Set(rows.filter(isFree).map(({ id }) => id));
  const toggle = (id: string) =>
    setIds((old) => {
      const others = [...old].filter((one) => one !== id);
      return new Set(old.has(id) ? others : [...others, id]);
    });
  const cancel = (wanted: readonly string[]) => {
    const own = wanted.filter((id) => open.has(id));
    setIds(new Set());
    if (own.length > 0) void cancelRuns(own);
  };
  const chosen = { ids: new Set([...ids].filter((id) => open.has(id))), toggle, isFree };
  return { chosen, cancel };
}

function columnsOf(projectId: string): Column<Run>[] {
  return [
    { name: 'Status', cell: ({ status }) => <RunState status={status} /> },
    { name: 'Run', cell: ({ id }) => <Id value={id} /> },
    {
      name: 'Function',
      cell: ({ functionName }) => (
        <span class="function-name">
          <Foreign text={functionName} max={60} />
        </span>
      ),
    },
    { name: 'Version', kind: 'late', cell: ({ versionId }) => <Id value={versionId} /> },
    { name: 'Accepted', cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      name: 'Started by',
      kind: 'late',
      cell: ({ trigger }) => (trigger === undefined ? 'request' : trigger.type),
    },
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
