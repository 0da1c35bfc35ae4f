/** The sessions of the project. */
import { useState } from 'preact/hooks';
import { api, sentenceOf } from '../../data/api.ts';
import { labelsOf } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import type { Session } from '../../data/types.ts';
import { Choose, Filters, SINCE, Type, useFrom } from '../../parts/filters.tsx';
import { FirstSession } from '../../parts/first.tsx';
import { ListPage } from '../../parts/list-page.tsx';
import { announce } from '../../parts/notice.tsx';
import { usePagedList } from '../../parts/paged-list.tsx';
import { SessionState } from '../../parts/state.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Foreign, Id, Length, Time } from '../../parts/text.tsx';

const FILTERS = ['status', 'text', 'q', 'functionId', 'contextId', 'since'];
const STATUSES: readonly [string, string][] = [
  ['', 'any'],
  ['RUNNING', 'running'],
  ['PENDING', 'starting'],
  ['COMPLETED', 'ended'],
  ['TIMED_OUT', 'timed out'],
  ['ERROR', 'failed'],
];
const LABELS_MAX = 3;

export function SessionsPage() {
  const { projectId, query } = route.value;
  const from = useFrom();
  const names = ['status', 'text', 'q', 'functionId', 'contextId'];
  const given = names.map((name) => [name, query.get(name) ?? undefined]);
  const list = usePagedList<Session>(
    {
      path: '/console/api/v1/sessions',
      query: { ...Object.fromEntries(given), from },
      kind: 'SESSIONS',
      rowsOf: (answer) => answer['sessions'] as Session[],
    },
    () => scrollY > 100,
  );
  const { chosen, release } = useChosen(list.rows);
  const isFiltered = FILTERS.some((name) => query.has(name));
  return (
    <ListPage
      title="Sessions"
      list={list}
      empty={isFiltered ? undefined : <FirstSession />}
      filters={<SessionFilters />}
      action={
        chosen.ids.size > 0 && (
          <button type="button" class="danger" onClick={() => release([...chosen.ids])}>
            Release {chosen.ids.size} chosen
          </button>
        )
      }
    >
      <Table
        label="Sessions"
        rows={list.rows}
        columns={columnsOf(projectId)}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => pathOf(projectId, 'sessions', id)}
        chosen={chosen}
        keys={(row) => [
          {
            keys: 'r',
            does: 'release the chosen sessions or the row',
            run: () => release(chosen.ids.size > 0 ? [...chosen.ids] : [row.id]),
          },
        ]}
      />
    </ListPage>
  );
}

function SessionFilters() {
  return (
    <Filters names={FILTERS}>
      <Choose name="status" label="Status" options={STATUSES} />
      <Choose name="since" label="Started" options={SINCE} />
      <Type name="text" label="Text" placeholder="id, label or function" />
      <Type name="q" label="Metadata" placeholder="user_metadata['key']:'value'" />
    </Filters>
  );
}

function columnsOf(projectId: string): Column<Session>[] {
  return [
    { name: 'Status', cell: (session) => <SessionState session={session} /> },
    { name: 'Session', cell: ({ id }) => <Id value={id} /> },
    {
      name: 'Labels',
      kind: 'wide',
      cell: ({ userMetadata }) => <Labels metadata={userMetadata} />,
    },
    {
      name: 'Function',
      kind: 'late',
      cell: ({ functionName, invocationId }) =>
        invocationId !== undefined && (
          <a href={pathOf(projectId, 'runs', invocationId)}>{functionName ?? 'a run'}</a>
        ),
    },
    { name: 'Started', cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      name: 'Length',
      cell: ({ startedAt, endedAt }) => <Length from={startedAt} to={endedAt} />,
    },
    {
      name: 'End',
      kind: 'late',
      cell: ({ endReason }) => endReason !== undefined && <Foreign text={endReason} max={120} />,
    },
  ];
}

export function Labels({ metadata }: { metadata: Record<string, unknown> | undefined }) {
  return (
    <>
      {labelsOf(metadata, LABELS_MAX).map((label) => (
        <span key={label} class="label">
          <Foreign text={label} max={60} />
        </span>
      ))}
    </>
  );
}

export function isOpen({ status, isReleased }: Session): boolean {
  return (status === 'PENDING' || status === 'RUNNING') && !isReleased;
}

function useChosen(rows: readonly Session[]) {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const open = new Set(rows.filter(isOpen).map(({ id }) => id));
  const toggle = (id: string) =>
    setIds((old) => {
      const others = [...old].filter((one) => one !== id);
      return new Set(old.has(id) ? others : [...others, id]);
    });
  const release = async (wanted: string[]) => {
    setIds(new Set());
    await releaseAll(wanted);
  };
  const chosen = { ids: new Set([...ids].filter((id) => open.has(id))), toggle, isFree: isOpen };
  return { chosen, release: (wanted: string[]) => void release(wanted) };
}

/** Requests the end of the sessions, one after another, and says how many were. */
export async function releaseAll(ids: readonly string[]): Promise<void> {
  let released = 0;
  for (const id of ids) {
    try {
      await api(`/v1/sessions/${id}`, { status: 'REQUEST_RELEASE' });
      released += 1;
    } catch (error) {
      announce(sentenceOf(error));
      return;
    }
  }
  announce(released === 1 ? 'The session is released.' : `${released} sessions are released.`);
}
