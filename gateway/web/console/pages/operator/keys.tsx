/** The API keys of a project: a new one is shown once, a revoked one ends its logins at once. */
import { useState } from 'preact/hooks';
import { api, send, sentenceOf } from '../../data/api.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Empty, Failure, useLoad } from '../../parts/load.tsx';
import { announce } from '../../parts/notice.tsx';
import { State } from '../../parts/state.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Command, Copy, Foreign, Time } from '../../parts/text.tsx';
import type { ApiKey } from './types.ts';

const KEYS = '/console/api/v1/operator/keys';

export function Keys({ projectId }: { projectId: string }) {
  const path = `${KEYS}?project=${encodeURIComponent(projectId)}`;
  const { value, error, again } = useLoad<{ apiKeys: ApiKey[] }>(path, ['OPERATOR']);
  const [made, setMade] = useState<string>();
  const [revoking, setRevoking] = useState<ApiKey>();
  const [failure, setFailure] = useState<string>();
  const make = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const name = String(new FormData(form).get('name'));
    try {
      const { key } = await api<{ key: string }>(
        `/console/api/v1/operator/projects/${projectId}/keys`,
        { name },
      );
      form.reset();
      setFailure(undefined);
      setMade(key);
      again();
    } catch (reason) {
      setFailure(sentenceOf(reason));
    }
  };
  return (
    <section class="operator-keys" aria-label="API keys">
      <h2>API keys</h2>
      <form class="operator-line" onSubmit={make}>
        <label>
          <span>Label</span>
          <input name="name" maxLength={128} autocomplete="off" placeholder="such as ci" />
        </label>
        <button type="submit">Make a key</button>
      </form>
      {failure !== undefined && (
        <p class="error" role="alert">
          {failure}
        </p>
      )}
      {error !== undefined && <Failure error={error} again={again} />}
      {value?.apiKeys.length === 0 && <Empty title="This project has no key." />}
      {value !== undefined && value.apiKeys.length > 0 && (
        <Table
          label="API keys"
          rows={[...value.apiKeys].reverse()}
          columns={columnsOf(setRevoking)}
          keyOf={({ id }) => id}
          hrefOf={() => undefined}
        />
      )}
      {made !== undefined && <MadeKey text={made} close={() => setMade(undefined)} />}
      {revoking !== undefined && (
        <Revoke
          apiKey={revoking}
          close={() => setRevoking(undefined)}
          revoked={() => {
            setRevoking(undefined);
            again();
          }}
        />
      )}
    </section>
  );
}

function columnsOf(revoke: (key: ApiKey) => void): Column<ApiKey>[] {
  return [
    {
      name: 'Status',
      cell: ({ revokedAt }) =>
        revokedAt === undefined ? (
          <State name="done" word="Valid" />
        ) : (
          <State name="failed" word="Revoked" />
        ),
    },
    {
      name: 'Key',
      cell: ({ id }) => (
        <span class="id">
          <code>{id}</code>
          <Copy text={id} label="Copy id" />
        </span>
      ),
    },
    { name: 'Label', kind: 'wide', cell: ({ name }) => <Foreign text={name} max={80} /> },
    { name: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
    { name: 'Last use', cell: ({ lastUsedAt }) => <Time at={lastUsedAt} /> },
    { name: 'Revoked', kind: 'late', cell: ({ revokedAt }) => <Time at={revokedAt} /> },
    {
      name: 'Action',
      cell: (key) =>
        key.revokedAt === undefined && (
          <button type="button" aria-label={`Revoke ${key.id}`} onClick={() => revoke(key)}>
            Revoke
          </button>
        ),
    },
  ];
}

function MadeKey({ text, close }: { text: string; close: () => void }) {
  return (
    <Dialog label="The new key" close={close}>
      <div class="operator-form">
        <h2>The new key</h2>
        <p>Copy it now: it is shown once, and only its hash is stored.</p>
        <Command text={text} />
        <p class="operator-buttons">
          <button type="button" class="main" onClick={close}>
            I have copied it
          </button>
        </p>
      </div>
    </Dialog>
  );
}

type RevokeProps = { apiKey: ApiKey; close: () => void; revoked: () => void };

function Revoke({ apiKey, close, revoked }: RevokeProps) {
  const [error, setError] = useState<string>();
  const revoke = async () => {
    try {
      await send('DELETE', `${KEYS}/${apiKey.id}`);
      announce('The key is revoked.');
      revoked();
    } catch (reason) {
      setError(sentenceOf(reason));
    }
  };
  return (
    <Dialog label="Revoke the key" close={close}>
      <div class="operator-form">
        <h2>
          Revoke <code>{apiKey.id}</code>?
        </h2>
        <p>
          Requests with it are refused at once, its connections close within a second, and logins of
          the console by it end. Its sessions continue.
        </p>
        {error !== undefined && (
          <p class="error" role="alert">
            {error}
          </p>
        )}
        <p class="operator-buttons">
          <button type="button" class="main" onClick={() => void revoke()}>
            Revoke
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </p>
      </div>
    </Dialog>
  );
}
