/** The contexts of the project: their content is encrypted, and is shown as its size only. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { onChange } from '../../data/changes.ts';
import { bytesText } from '../../data/format.ts';
import { paced } from '../../data/paced.ts';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import type { Context } from '../../data/types.ts';
import { Filters, Type } from '../../parts/filters.tsx';
import { FirstContext } from '../../parts/first.tsx';
import { ListPage } from '../../parts/list-page.tsx';
import { usePagedList } from '../../parts/paged-list.tsx';
import { State } from '../../parts/state.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Foreign, Id, Time } from '../../parts/text.tsx';
import { ContextDialog, type ContextTask, download } from './tasks.tsx';

/** As many as a row of the list names. */
const NAMED_MAX = 3;

export function ContextsPage() {
  const { projectId, query } = route.value;
  const [task, setTask] = useState<ContextTask>();
  const list = usePagedList<Context>(
    {
      path: '/console/api/v1/contexts',
      query: { text: query.get('text') ?? undefined },
      kind: 'CONTEXTS',
      rowsOf: (answer) => answer['contexts'] as Context[],
    },
    () => scrollY > 100,
  );
  useOpenSessions(list.again);
  return (
    <>
      <ListPage
        title="Contexts"
        list={list}
        empty={query.has('text') ? undefined : <FirstContext />}
        filters={
          <Filters names={['text']}>
            <Type name="text" label="Text" placeholder="id or name" />
          </Filters>
        }
        action={
          <button type="button" onClick={() => setTask({ name: 'new' })}>
            New context
          </button>
        }
      >
        <Table
          label="Contexts"
          rows={list.rows}
          columns={columnsOf(projectId, setTask)}
          keyOf={({ id }) => id}
          hrefOf={() => undefined}
        />
      </ListPage>
      {task !== undefined && (
        <ContextDialog
          task={task}
          close={() => {
            setTask(undefined);
            list.again();
          }}
        />
      )}
    </>
  );
}

/** The list names open sessions, whose changes are not those of a context. */
function useOpenSessions(again: () => void): void {
  const latest = useRef(again);
  latest.current = again;
  useEffect(() => {
    const reads = paced(async () => latest.current());
    const end = onChange(['SESSIONS'], reads.request);
    return () => {
      end();
      reads.stop();
    };
  }, []);
}

function columnsOf(projectId: string, open: (task: ContextTask) => void): Column<Context>[] {
  return [
    {
      name: 'Name',
      kind: 'wide',
      cell: ({ name }) =>
        name === undefined ? <span class="none">no name</span> : <Foreign text={name} max={128} />,
    },
    { name: 'Context', cell: ({ id }) => <Id value={id} /> },
    {
      name: 'Size',
      cell: ({ size }) => (size === undefined ? <span class="none">empty</span> : bytesText(size)),
    },
    { name: 'Saved', cell: (context) => <Saved context={context} projectId={projectId} /> },
    { name: 'Saves', kind: 'late', cell: ({ saves }) => saves },
    {
      name: 'In use by',
      cell: ({ sessionIds }) => <InUse ids={sessionIds} projectId={projectId} />,
    },
    { name: 'Created', kind: 'late', cell: ({ createdAt }) => <Time at={createdAt} /> },
    { name: '', cell: (context) => <Actions context={context} open={open} /> },
  ];
}

type CellProps = { context: Context; projectId: string };

function Saved({ context: { savedAt, savedBy }, projectId }: CellProps) {
  if (savedAt === undefined) return <span class="none">never</span>;
  return (
    <>
      <Time at={savedAt} />{' '}
      {savedBy !== undefined && (
        <a href={pathOf(projectId, 'sessions', savedBy)} title={savedBy}>
          by a session
        </a>
      )}
    </>
  );
}

function InUse({ ids, projectId }: { ids: readonly string[]; projectId: string }) {
  if (ids.length === 0) return <span class="none">–</span>;
  return (
    <>
      {ids.slice(0, NAMED_MAX).map((id) => (
        <a key={id} class="in-use" href={pathOf(projectId, 'sessions', id)} title={id}>
          <State name="running" word={`…${id.slice(-4)}`} />
        </a>
      ))}
      {ids.length > NAMED_MAX && 'and more'}
    </>
  );
}

type ActionsProps = { context: Context; open: (task: ContextTask) => void };

function Actions({ context, open }: ActionsProps) {
  return (
    <div class="actions">
      <button type="button" onClick={() => open({ name: 'start', context })}>
        Start session
      </button>
      <button
        type="button"
        disabled={context.size === undefined}
        title={context.size === undefined ? 'Nothing was saved yet' : 'Its encrypted content'}
        onClick={() => void download(context)}
      >
        Download
      </button>
      <button type="button" onClick={() => open({ name: 'upload', context })}>
        Upload
      </button>
      <button type="button" class="danger" onClick={() => open({ name: 'delete', context })}>
        Delete
      </button>
    </div>
  );
}
