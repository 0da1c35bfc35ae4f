/** The API keys of the project: who made them, when they were used, and what their end ends. */
import { useState } from 'preact/hooks';
import type { Keys as KeyList, ProjectKey } from '../../data/types.ts';
import { Failure, useLoad } from '../../parts/load.tsx';
import { State } from '../../parts/state.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Foreign, Id, Time } from '../../parts/text.tsx';
import { NewKey, RevokeKey } from './key-dialogs.tsx';

export function Keys() {
  const { value, error, again } = useLoad<KeyList>('/console/api/v1/keys', ['KEYS']);
  const [task, setTask] = useState<'new' | ProjectKey>();
  const close = () => {
    setTask(undefined);
    again();
  };
  return (
    <section class="api-keys" aria-label="API keys">
      <div class="head">
        <h2>API keys</h2>
        <button type="button" onClick={() => setTask('new')}>
          New key
        </button>
      </div>
      {error !== undefined && <Failure error={error} again={again} />}
      {value === undefined && error === undefined && <p class="hint">Reading…</p>}
      {value !== undefined && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways by keys
        <section class="scroll" tabIndex={0} aria-label="Keys">
          <Table
            label="API keys"
            rows={value.keys}
            columns={columnsOf(value, setTask)}
            keyOf={({ id }) => id}
            hrefOf={() => undefined}
          />
        </section>
      )}
      {task === 'new' && <NewKey close={close} />}
      {value !== undefined && task !== undefined && task !== 'new' && (
        <RevokeKey revoked={task} keys={value} close={close} />
      )}
    </section>
  );
}

function columnsOf(
  { keys, ownKeyId }: KeyList,
  revoke: (key: ProjectKey) => void,
): Column<ProjectKey>[] {
  return [
    {
      name: 'Status',
      cell: ({ revokedAt }) =>
        revokedAt === undefined ? (
          <State name="running" word="Valid" />
        ) : (
          <State name="done" word="Revoked" />
        ),
    },
    { name: 'Key', cell: ({ id }) => <Id value={id} /> },
    {
      name: 'Name',
      kind: 'wide',
      cell: ({ id, name }) => (
        <>
          {name === '' ? <span class="none">no name</span> : <Foreign text={name} max={128} />}
          {id === ownKeyId && <span class="label own-key">this login</span>}
        </>
      ),
    },
    { name: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
    { name: 'Made by', kind: 'late', cell: ({ madeBy }) => <Maker id={madeBy} keys={keys} /> },
    {
      name: 'Last used',
      cell: ({ lastUsedAt }) =>
        lastUsedAt === undefined ? <span class="none">never</span> : <Time at={lastUsedAt} />,
    },
    { name: 'Logins', kind: 'late', cell: ({ logins }) => logins },
    {
      name: '',
      cell: (key) =>
        key.revokedAt === undefined ? (
          <div class="actions">
            <button type="button" class="danger" onClick={() => revoke(key)}>
              Revoke
            </button>
          </div>
        ) : (
          <Time at={key.revokedAt} />
        ),
    },
  ];
}

function Maker({ id, keys }: { id: string | undefined; keys: readonly ProjectKey[] }) {
  if (id === undefined) return <span class="none">the operator</span>;
  const name = keys.find((key) => key.id === id)?.name ?? '';
  return name === '' ? <code>{id}</code> : <Foreign text={name} max={40} />;
}
