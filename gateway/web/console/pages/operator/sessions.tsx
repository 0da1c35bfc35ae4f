/** The sessions of all projects, newest first. */
import { useState } from 'preact/hooks';
import { api, sentenceOf } from '../../data/api.ts';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import { Choose, Filters } from '../../parts/filters.tsx';
import { ListPage } from '../../parts/list-page.tsx';
import { Empty } from '../../parts/load.tsx';
import { announce } from '../../parts/notice.tsx';
import { usePagedList } from '../../parts/paged-list.tsx';
import { State, stateOfSession } from '../../parts/state.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Foreign, Id, Length, Time } from '../../parts/text.tsx';
import type { OperatorSession } from './types.ts';

const STATES: readonly [string, string][] = [
  ['', 'all'],
  ['open', 'starting or running'],
];

export function AllSessionsPage() {
  const isOpen = route.value.query.get('state') === 'open' ? 'true' : undefined;
  const list = usePagedList<OperatorSession>(
    {
      path: '/console/api/v1/operator/sessions',
      query: { isOpen },
      kind: 'OPERATOR',
      rowsOf: (answer) => answer['sessions'] as OperatorSession[],
    },
    () => scrollY > 100,
  );
  return (
    <ListPage
      title="Sessions of all projects"
      list={list}
      empty={<Empty title={isOpen ? 'No session runs.' : 'No session yet.'} />}
      filters={
        <Filters names={['state']}>
          <Choose name="state" label="Sessions" options={STATES} />
        </Filters>
      }
    >
      <Table
        label="Sessions"
        rows={list.rows}
        columns={[...COLUMNS, actionOf(list.again)]}
        keyOf={({ id }) => id}
        hrefOf={({ projectId, id }) => pathOf(projectId, 'sessions', id)}
      />
    </ListPage>
  );
}

const COLUMNS: Column<OperatorSession>[] = [
  { name: 'Status', cell: (session) => <SessionOf session={session} /> },
  {
    name: 'Project',
    cell: ({ projectId, projectName }) => (
      <a href={pathOf(projectId)}>
        <Foreign text={projectName} max={60} />
      </a>
    ),
  },
  { name: 'Session', cell: ({ id }) => <Id value={id} /> },
  { name: 'Accepted', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { name: 'Length', cell: ({ startedAt, endedAt }) => <Length from={startedAt} to={endedAt} /> },
  {
    name: 'End',
    kind: 'wide',
    cell: ({ endReason }) => endReason !== undefined && <Foreign text={endReason} max={120} />,
  },
];

function SessionOf({ session }: { session: OperatorSession }) {
  const [name, word] = stateOfSession(session);
  return <State name={name} word={word} />;
}

function actionOf(again: () => void): Column<OperatorSession> {
  return { name: 'Action', cell: (session) => <Release session={session} again={again} /> };
}

function Release({ session, again }: { session: OperatorSession; again: () => void }) {
  const [isBusy, setBusy] = useState(false);
  const { id, projectId, status, isReleased } = session;
  if (isReleased || (status !== 'RUNNING' && status !== 'PENDING')) return null;
  const release = async () => {
    setBusy(true);
    try {
      const path = `/console/api/v1/as/${projectId}/v1/sessions/${id}`;
      await api(path, { status: 'REQUEST_RELEASE' });
      announce('The session ends.');
      again();
    } catch (error) {
      announce(sentenceOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <button
      type="button"
      aria-label={`Release ${id}`}
      disabled={isBusy}
      onClick={() => void release()}
    >
      Release
    </button>
  );
}
