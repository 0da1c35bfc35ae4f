/**
 * Makes and revokes keys. The text of a new key is in the state of its dialog only: when the dialog
 * is closed, the page does not have it any more.
 */
import { useState } from 'preact/hooks';
import { api } from '../../data/api.ts';
import type { Keys, ProjectKey } from '../../data/types.ts';
import { Confirm } from '../../parts/actions/confirm.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { announce } from '../../parts/notice.tsx';
import { Command, Foreign } from '../../parts/text.tsx';

export function NewKey({ close }: { close(): void }) {
  const [name, setName] = useState('');
  const [text, setText] = useState<string>();
  if (text !== undefined) return <Shown text={text} close={close} />;
  const run = async () => {
    const made = await api<{ text: string }>('/console/api/v1/keys', { name });
    setText(made.text);
  };
  return (
    <Confirm title="New API key" action="Make key" run={run} close={() => undefined} cancel={close}>
      <p>A key is the whole project's: with it a program can do everything that this page can.</p>
      <label>
        Name
        <input
          type="text"
          maxLength={128}
          autocomplete="off"
          placeholder="the program or the person that will have it"
          value={name}
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
      </label>
    </Confirm>
  );
}

function Shown({ text, close }: { text: string; close(): void }) {
  return (
    <Dialog label="The new key" close={close} stays>
      <div class="confirm">
        <h2>The new key</h2>
        <p>This is the only time that it is shown. Copy it now.</p>
        <Command text={text} label="Copy the key" />
        <div class="confirm-buttons">
          <button type="button" class="main" onClick={close}>
            I have copied it
          </button>
        </div>
      </div>
    </Dialog>
  );
}

type RevokeProps = { revoked: ProjectKey; keys: Keys; close(): void };

export function RevokeKey({ revoked, keys: { keys, ownKeyId }, close }: RevokeProps) {
  const { id, name, logins } = revoked;
  const [isSure, setSure] = useState(false);
  const valid = keys.filter(({ revokedAt }) => revokedAt === undefined);
  const isLast = valid.length === 1;
  const isOwn = id === ownKeyId;
  const made = valid.filter(({ madeBy }) => madeBy === id);
  const run = async () => {
    await api(`/console/api/v1/keys/${id}/revoke`, { last: isLast });
    announce('The key was revoked.');
  };
  return (
    <Confirm
      title="Revoke API key"
      action="Revoke"
      isDangerous
      isReady={!isLast || isSure}
      run={run}
      close={close}
    >
      <p>
        <code>{id}</code> {name !== '' && <Foreign text={name} max={128} />} cannot be made valid
        again. At once, or within a few seconds:
      </p>
      <ul>
        <li>Requests with it are refused.</li>
        <li>Connections to sessions and live views that were opened with it are closed.</li>
        <li>Links that were made with it end: of downloads, uploads and shared sessions.</li>
        {logins > 0 && <li>{loginsText(logins, isOwn)}</li>}
      </ul>
      <p>Sessions and runs go on.</p>
      <MadeWith keys={made} />
      {isLast && (
        <label class="error">
          <input
            type="checkbox"
            checked={isSure}
            onChange={({ currentTarget }) => setSure(currentTarget.checked)}
          />
          It is the only valid key of this project. Nobody can use the project until the operator
          makes another one with `tabern keys create`.
        </label>
      )}
    </Confirm>
  );
}

function MadeWith({ keys }: { keys: readonly ProjectKey[] }) {
  if (keys.length === 0) return null;
  return (
    <p>
      Keys that were made with it stay valid; revoke them, too, if it was stolen:{' '}
      {keys.map(({ id, name }) => (
        <span key={id} class="label">
          <code>{id}</code> <Foreign text={name} max={40} />
        </span>
      ))}
    </p>
  );
}

function loginsText(logins: number, isOwn: boolean): string {
  const all =
    logins === 1 ? '1 login to this console ends' : `${logins} logins to this console end`;
  return isOwn ? `${all}, yours included: you will be logged out.` : `${all}.`;
}
