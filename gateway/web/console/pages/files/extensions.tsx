/** Browser extensions that sessions of the project may load. */
import { useState } from 'preact/hooks';
import { api, send } from '../../data/api.ts';
import { bytesText } from '../../data/format.ts';
import type { Extension } from '../../data/types.ts';
import { Confirm } from '../../parts/actions/confirm.tsx';
import { Failure } from '../../parts/load.tsx';
import { announce } from '../../parts/notice.tsx';
import { type PagedList, usePagedList } from '../../parts/paged-list.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Foreign, Id, Time } from '../../parts/text.tsx';

type Task = { name: 'upload' } | { name: 'delete'; extension: Extension };

export function Extensions() {
  const [task, setTask] = useState<Task>();
  const list = usePagedList<Extension>(
    {
      path: '/console/api/v1/extensions',
      query: {},
      kind: 'EXTENSIONS',
      rowsOf: (answer) => answer['extensions'] as Extension[],
    },
    () => false,
  );
  const close = () => {
    setTask(undefined);
    list.again();
  };
  return (
    <section class="extensions" aria-label="Extensions">
      <div class="head">
        <h2>Extensions</h2>
        <button type="button" onClick={() => setTask({ name: 'upload' })}>
          Upload extension
        </button>
      </div>
      {list.error !== undefined && <Failure error={list.error} again={list.again} />}
      {list.isLoaded && list.rows.length === 0 && list.error === undefined && (
        <p class="hint">
          No extension yet. A zip with <code>manifest.json</code> at its root becomes one; a session
          loads it with <code>extensionId</code>.
        </p>
      )}
      {list.rows.length > 0 && (
        <Rows list={list} remove={(extension) => setTask({ name: 'delete', extension })} />
      )}
      {task?.name === 'upload' && <Upload close={close} />}
      {task?.name === 'delete' && <Delete extension={task.extension} close={close} />}
    </section>
  );
}

type RowsProps = { list: PagedList<Extension>; remove(extension: Extension): void };

function Rows({ list, remove }: RowsProps) {
  const columns: Column<Extension>[] = [
    { name: 'File', kind: 'wide', cell: ({ fileName }) => <Foreign text={fileName} max={200} /> },
    { name: 'Extension', cell: ({ id }) => <Id value={id} /> },
    { name: 'Size', cell: ({ size }) => bytesText(size) },
    { name: 'Uploaded', cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      name: '',
      cell: (extension) => (
        <div class="actions">
          <button type="button" class="danger" onClick={() => remove(extension)}>
            Delete
          </button>
        </div>
      ),
    },
  ];
  return (
    <div class="scroll">
      <Table
        label="Extensions"
        rows={list.rows}
        columns={columns}
        keyOf={({ id }) => id}
        hrefOf={() => undefined}
      />
      {list.hasMore && (
        <button type="button" class="more" onClick={list.more}>
          Show more
        </button>
      )}
    </div>
  );
}

function Upload({ close }: { close(): void }) {
  const [file, setFile] = useState<File>();
  const run = async () => {
    if (file === undefined) return;
    const form = new FormData();
    form.append('file', file);
    await api('/v1/extensions', form);
    announce('The extension was uploaded.');
  };
  return (
    <Confirm
      title="Upload extension"
      action="Upload"
      isReady={file !== undefined}
      run={run}
      close={close}
    >
      <p>
        A zip of an unpacked Chrome extension, with <code>manifest.json</code> at its root. It is
        checked before it is stored.
      </p>
      <label>
        File (.zip)
        <input
          type="file"
          accept=".zip,application/zip"
          onChange={({ currentTarget }) => setFile(currentTarget.files?.[0])}
        />
      </label>
      {file !== undefined && <p class="fact">{bytesText(file.size)}</p>}
    </Confirm>
  );
}

function Delete({ extension, close }: { extension: Extension; close(): void }) {
  const run = async () => {
    await send('DELETE', `/v1/extensions/${extension.id}`);
    announce('The extension was deleted.');
  };
  return (
    <Confirm title="Delete extension" action="Delete" isDangerous run={run} close={close}>
      <p>
        <strong>
          <Foreign text={extension.fileName} max={200} />
        </strong>{' '}
        is removed. Open sessions that load it go on with it; new ones are refused.
      </p>
    </Confirm>
  );
}
