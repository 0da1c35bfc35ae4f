/** Files that pages of all sessions downloaded, and extensions. Names are texts of pages. */
import { useState } from 'preact/hooks';
import { inProject, send } from '../../data/api.ts';
import { bytesText } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import { route } from '../../data/router.ts';
import type { StoredFile } from '../../data/types.ts';
import { Confirm } from '../../parts/actions/confirm.tsx';
import { Choose, Filters, SINCE, Type, useFrom } from '../../parts/filters.tsx';
import { ListPage } from '../../parts/list-page.tsx';
import { Empty } from '../../parts/load.tsx';
import { announce } from '../../parts/notice.tsx';
import { type PagedList, usePagedList } from '../../parts/paged-list.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Foreign, Id, Time } from '../../parts/text.tsx';
import { Extensions } from './extensions.tsx';

const FILTERS = ['text', 'sessionId', 'since'];

export function FilesPage() {
  const { projectId, query } = route.value;
  const [deleted, setDeleted] = useState<StoredFile>();
  const list = useFiles();
  const isFiltered = FILTERS.some((name) => query.has(name));
  return (
    <>
      <ListPage
        title="Files"
        list={list}
        empty={isFiltered ? undefined : <NoFile />}
        filters={
          <Filters names={FILTERS}>
            <Choose name="since" label="Downloaded" options={SINCE} />
            <Type name="text" label="Text" placeholder="file name, id or session" />
          </Filters>
        }
        action={
          <a class="late" href={pathOf(projectId, 'usage')}>
            Bytes of recordings and logs are on Usage
          </a>
        }
      >
        <Table
          label="Files"
          rows={list.rows}
          columns={columnsOf(projectId, setDeleted)}
          keyOf={({ id }) => id}
          hrefOf={() => undefined}
        />
      </ListPage>
      <Extensions />
      {deleted !== undefined && (
        <DeleteFile
          file={deleted}
          close={() => {
            setDeleted(undefined);
            list.again();
          }}
        />
      )}
    </>
  );
}

function useFiles(): PagedList<StoredFile> {
  const { query } = route.value;
  const from = useFrom();
  const given = ['text', 'sessionId'].map((name) => [name, query.get(name) ?? undefined]);
  return usePagedList<StoredFile>(
    {
      path: '/console/api/v1/downloads',
      query: { ...Object.fromEntries(given), from },
      kind: 'DOWNLOADS',
      rowsOf: (answer) => answer['downloads'] as StoredFile[],
    },
    () => scrollY > 100,
  );
}

function columnsOf(projectId: string, remove: (file: StoredFile) => void): Column<StoredFile>[] {
  return [
    { name: 'Name', kind: 'wide', cell: ({ filename }) => <Foreign text={filename} max={200} /> },
    { name: 'Type', kind: 'late', cell: ({ mimeType }) => <Foreign text={mimeType} max={40} /> },
    { name: 'Size', cell: ({ size }) => bytesText(size) },
    {
      name: 'Session',
      cell: ({ sessionId }) => (
        <a href={pathOf(projectId, 'sessions', sessionId)} title={sessionId}>
          <code>…{sessionId.slice(-8)}</code>
        </a>
      ),
    },
    { name: 'SHA-256', kind: 'late', cell: ({ checksum }) => <Id value={checksum} /> },
    { name: 'Downloaded', cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      name: '',
      cell: (file) => (
        <div class="actions">
          <a
            class="button"
            href={inProject(`/console/api/v1/downloads/${file.id}/content`)}
            download
          >
            Download
          </a>
          <button type="button" class="danger" onClick={() => remove(file)}>
            Delete
          </button>
        </div>
      ),
    },
  ];
}

function NoFile() {
  return (
    <Empty title="No file yet.">
      <p>
        A file that a page of a session downloads appears here. Nothing has to be turned on for it.
      </p>
    </Empty>
  );
}

function DeleteFile({ file: { id, filename, size }, close }: { file: StoredFile; close(): void }) {
  const run = async () => {
    await send('DELETE', `/v1/downloads/${id}`);
    announce('The file was deleted.');
  };
  return (
    <Confirm title="Delete file" action="Delete" isDangerous run={run} close={close}>
      <p>
        <strong>
          <Foreign text={filename} max={200} />
        </strong>{' '}
        ({bytesText(size)}) is removed. This cannot be undone.
      </p>
    </Confirm>
  );
}
