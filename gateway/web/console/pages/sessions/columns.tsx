/** The columns of the list of sessions. */
import { withQuery } from '../../data/api.ts';
import { bytesText, labelsOf } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import type { Session } from '../../data/types.ts';
import { SessionState } from '../../parts/state.tsx';
import type { Column } from '../../parts/table.tsx';
import { Foreign, Id, Length, Time } from '../../parts/text.tsx';
import { isRunning, states } from './running.ts';
import { Thumbnail } from './thumbnail.tsx';

const LABELS_MAX = 3;
/** Hidden until a person wants them. */
export const HIDDEN_AT_FIRST = ['Context', 'Region', 'Times out'];

export function columnsOf(projectId: string): Column<Session>[] {
  return [
    { name: 'Status', cell: (session) => <SessionState session={session} /> },
    {
      name: 'Page, or its end',
      kind: 'wide',
      cell: (session) => <PageOrEnd session={session} projectId={projectId} />,
    },
    { name: 'Session', cell: ({ id }) => <Id value={id} /> },
    { name: 'Labels', cell: (session) => <Labels session={session} projectId={projectId} /> },
    {
      name: 'Function',
      kind: 'late',
      cell: ({ functionName, invocationId }) =>
        invocationId !== undefined && (
          <a href={pathOf(projectId, 'runs', invocationId)}>{functionName ?? 'a run'}</a>
        ),
    },
    {
      name: 'Context',
      kind: 'late',
      cell: ({ contextId }) =>
        contextId !== undefined && (
          <a href={withQuery(pathOf(projectId, 'sessions'), { contextId })} title={contextId}>
            <code>{contextId.slice(0, 8)}</code>
          </a>
        ),
    },
    { name: 'Region', kind: 'late', cell: ({ region }) => region },
    ...TIMES,
    ...RUNNING,
  ];
}

const TIMES: Column<Session>[] = [
  { name: 'Started', cell: ({ createdAt }) => <Time at={createdAt} /> },
  {
    name: 'Length',
    cell: ({ startedAt, endedAt }) => <Length from={startedAt} to={endedAt} />,
  },
  {
    name: 'Times out',
    kind: 'late',
    cell: (session) => isRunning(session) && <Time at={session.expiresAt} />,
  },
];

const RUNNING: Column<Session>[] = [
  {
    name: 'Clients',
    kind: 'late',
    cell: (session) => isRunning(session) && <Clients id={session.id} />,
  },
  {
    name: 'Memory',
    kind: 'late',
    cell: (session) => isRunning(session) && <Memory id={session.id} />,
  },
];

function PageOrEnd({ session, projectId }: { session: Session; projectId: string }) {
  const { id, endReason } = session;
  if (isRunning(session)) return <Page id={id} href={pathOf(projectId, 'sessions', id)} />;
  return endReason === undefined ? null : <Foreign text={endReason} max={120} />;
}

/** The picture, title and address of its active page; a link to the session. */
function Page({ id, href }: { id: string; href: string }) {
  const { title = '', url = '' } = states.value.get(id) ?? {};
  return (
    <a class="page-cell" href={href}>
      <Thumbnail id={id} />
      <span>
        {title !== '' && <Foreign text={title} max={80} />}
        {url !== '' && (
          <small>
            <Foreign text={url} max={120} />
          </small>
        )}
        {title === '' && url === '' && <span class="hidden">its page</span>}
      </span>
    </a>
  );
}

function Clients({ id }: { id: string }) {
  return <>{states.value.get(id)?.clients}</>;
}

function Memory({ id }: { id: string }) {
  const bytes = states.value.get(id)?.memoryBytes;
  return <>{bytes !== undefined && bytesText(bytes)}</>;
}

type LabelsProps = { session: Pick<Session, 'labels' | 'userMetadata'>; projectId: string };

/** Its labels, each a link to the sessions that have it, then texts of its metadata. */
export function Labels({ session, projectId }: LabelsProps) {
  return (
    <>
      {session.labels.map((label) => (
        <a
          key={label}
          class="label"
          href={withQuery(pathOf(projectId, 'sessions'), { label })}
          title="Sessions with this label"
        >
          <Foreign text={label} max={60} />
        </a>
      ))}
      {labelsOf(session.userMetadata, LABELS_MAX).map((label) => (
        <span key={label} class="label">
          <Foreign text={label} max={60} />
        </span>
      ))}
    </>
  );
}
