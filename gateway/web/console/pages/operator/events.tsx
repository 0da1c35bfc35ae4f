/** Who changed what in the console, and what core's log warned of. */

import { operatorPath } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import { Filters, Type } from '../../parts/filters.tsx';
import { ListPage } from '../../parts/list-page.tsx';
import { Empty, Failure, useLoad } from '../../parts/load.tsx';
import { usePagedList } from '../../parts/paged-list.tsx';
import { State } from '../../parts/state.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Foreign, Id, Time } from '../../parts/text.tsx';
import type { AuditEvent, LogNotice } from './types.ts';

const WHO = { operator: 'operator', key: 'API key', code: 'link' };

/** Of the whole installation. */
export function EventsPage() {
  return (
    <>
      <AuditList title="Changes in the console" columns={[...COLUMNS, PROJECT]} />
      <Notices />
    </>
  );
}

/** Of the page's project. */
export function AuditPage() {
  return <AuditList title="Changes in the console" columns={COLUMNS} />;
}

function AuditList({ title, columns }: { title: string; columns: Column<AuditEvent>[] }) {
  const text = route.value.query.get('text') ?? undefined;
  const list = usePagedList<AuditEvent>(
    {
      path: '/console/api/v1/audit',
      query: { text },
      kind: 'OPERATOR',
      rowsOf: (answer) => answer['events'] as AuditEvent[],
    },
    () => scrollY > 100,
  );
  return (
    <ListPage
      title={title}
      list={list}
      empty={text === undefined ? <Empty title="Nothing was changed in the console." /> : undefined}
      filters={
        <Filters names={['text']}>
          <Type name="text" label="Text" placeholder="operation, id or address" />
        </Filters>
      }
    >
      <Table
        label={title}
        rows={list.rows}
        columns={columns}
        keyOf={({ id }) => id}
        hrefOf={() => undefined}
      />
    </ListPage>
  );
}

const COLUMNS: Column<AuditEvent>[] = [
  { name: 'Outcome', cell: ({ outcome }) => <Outcome outcome={outcome} /> },
  { name: 'When', cell: ({ createdAt }) => <Time at={createdAt} /> },
  {
    name: 'Who',
    cell: ({ login, keyId }) => (
      <>
        {WHO[login]} {keyId !== undefined && <code>{keyId}</code>}
      </>
    ),
  },
  { name: 'Operation', kind: 'wide', cell: ({ operation }) => <code>{operation}</code> },
  { name: 'Object', cell: ({ objectId }) => objectId !== undefined && <Id value={objectId} /> },
  { name: 'From', cell: ({ address }) => <Foreign text={address} max={45} /> },
];
const PROJECT: Column<AuditEvent> = {
  name: 'Project',
  cell: ({ projectId, projectName }) =>
    projectId !== undefined && (
      <a href={operatorPath('projects', projectId)}>
        <Foreign text={projectName ?? projectId} max={60} />
      </a>
    ),
};

/** A change without an outcome runs, or the service ended before it did. */
function Outcome({ outcome }: { outcome: string | undefined }) {
  if (outcome === undefined) return <State name="waiting" word="Not known" />;
  return outcome === 'OK' ? (
    <State name="done" word="Done" />
  ) : (
    <State name="failed" word={outcome} />
  );
}

function Notices() {
  const path = '/console/api/v1/operator/notices';
  const { value, error, again } = useLoad<{ notices: LogNotice[] }>(path, ['OPERATOR']);
  return (
    <section class="operator-notices" aria-label="Warnings of the service">
      <h2>Warnings and errors of core since it started</h2>
      {error !== undefined && <Failure error={error} again={again} />}
      {value?.notices.length === 0 && <p class="hint">None.</p>}
      {value !== undefined && value.notices.length > 0 && (
        <Table
          label="Warnings and errors"
          rows={value.notices}
          columns={NOTICES}
          keyOf={({ number }) => String(number)}
          hrefOf={() => undefined}
        />
      )}
    </section>
  );
}

const NOTICES: Column<LogNotice>[] = [
  {
    name: 'Level',
    cell: ({ level }) =>
      level === 'error' ? (
        <State name="failed" word="Error" />
      ) : (
        <State name="waiting" word="Warning" />
      ),
  },
  { name: 'When', cell: ({ loggedAt }) => <Time at={loggedAt} /> },
  { name: 'Message', kind: 'wide', cell: ({ message }) => <Foreign text={message} max={200} /> },
];
