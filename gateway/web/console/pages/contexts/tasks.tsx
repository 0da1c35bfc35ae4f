/**
 * What a person does with a context: make one, start a session with it, upload and download its
 * content, delete it. The content is encrypted with the public key of its context, and only the
 * service can open it: a downloaded file is a copy of the content for this context and no other.
 */
import { useState } from 'preact/hooks';
import { api, send, sentenceOf } from '../../data/api.ts';
import { bytesText } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import { go, route } from '../../data/router.ts';
import type { Context } from '../../data/types.ts';
import { Confirm } from '../../parts/actions/confirm.tsx';
import { saveFrom } from '../../parts/actions/save.ts';
import { announce } from '../../parts/notice.tsx';
import { Foreign } from '../../parts/text.tsx';

export type ContextTask =
  | { name: 'new' }
  | { name: 'start' | 'upload' | 'delete'; context: Context };

type Props<Task> = { task: Task; close(): void };
type OfContext = Props<Extract<ContextTask, { context: Context }>>;

export function ContextDialog({ task, close }: Props<ContextTask>) {
  switch (task.name) {
    case 'new':
      return <NewContext close={close} />;
    case 'start':
      return <StartSession task={task} close={close} />;
    case 'upload':
      return <Upload task={task} close={close} />;
    case 'delete':
      return <Delete task={task} close={close} />;
  }
}

/** Saves the encrypted content. */
export async function download({ id }: Context): Promise<void> {
  try {
    const { downloadUrl } = await api<{ downloadUrl: string }>(`/v1/contexts/${id}/download`);
    saveFrom(ownPath(downloadUrl), `${id}.tbcx`);
  } catch (error) {
    announce(sentenceOf(error));
  }
}

function NewContext({ close }: { close(): void }) {
  const [name, setName] = useState('');
  const run = async () => {
    await api('/v1/contexts', name.trim() === '' ? {} : { name });
    announce('The context was made.');
  };
  return (
    <Confirm title="New context" action="Make context" run={run} close={close}>
      <p>
        A context keeps the cookies and the storage of sites between sessions: a login, for example.
        A session that starts with it and saves at its end fills it.
      </p>
      <label>
        Name (optional)
        <input
          type="text"
          maxLength={128}
          autocomplete="off"
          value={name}
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
      </label>
    </Confirm>
  );
}

function StartSession({ task: { context }, close }: OfContext) {
  const [isSaved, setSaved] = useState(true);
  const run = async () => {
    const own = { id: context.id, persist: isSaved };
    const settings = { browserSettings: { context: own }, keepAlive: true };
    const { id } = await api<{ id: string }>('/v1/sessions', settings);
    go(pathOf(route.value.projectId, 'sessions', id));
  };
  return (
    <Confirm title="Start a session" action="Start session" run={run} close={close}>
      <p>
        The session starts with the content of <Name context={context} />, and runs until it is
        released or times out.
      </p>
      <label>
        <input
          type="checkbox"
          checked={isSaved}
          onChange={({ currentTarget }) => setSaved(currentTarget.checked)}
        />
        Save the content at the end of the session
      </label>
    </Confirm>
  );
}

function Upload({ task: { context }, close }: OfContext) {
  const [file, setFile] = useState<File>();
  const run = async () => {
    if (file === undefined) return;
    const made = await send<{ uploadUrl: string }>('PUT', `/v1/contexts/${context.id}`);
    await send('PUT', ownPath(made.uploadUrl), file);
    announce('The content was replaced.');
  };
  return (
    <Confirm
      title="Upload content"
      action="Replace content"
      isDangerous
      isReady={file !== undefined}
      run={run}
      close={close}
    >
      <p>
        The file replaces the content of <Name context={context} />. It must be encrypted for this
        context: a file that was downloaded here from the same context, or one that a program made
        with its public key. Any other file is refused, and the content stays.
      </p>
      <label>
        File (.tbcx)
        <input
          type="file"
          accept=".tbcx,application/octet-stream"
          onChange={({ currentTarget }) => setFile(currentTarget.files?.[0])}
        />
      </label>
      {file !== undefined && <p class="fact">{bytesText(file.size)}</p>}
    </Confirm>
  );
}

function Delete({ task: { context }, close }: OfContext) {
  const { id, sessionIds } = context;
  const run = async () => {
    await send('DELETE', `/v1/contexts/${id}`);
    announce('The context was deleted.');
  };
  return (
    <Confirm title="Delete context" action="Delete" isDangerous run={run} close={close}>
      <p>
        <Name context={context} /> and its content are removed. This cannot be undone.
      </p>
      {sessionIds.length > 0 && (
        <p>Open sessions that loaded it go on, but nothing of them is saved any more.</p>
      )}
    </Confirm>
  );
}

function Name({ context: { name, id } }: { context: Context }) {
  if (name === undefined) return <code>{id}</code>;
  return (
    <strong>
      <Foreign text={name} max={128} />
    </strong>
  );
}

/** A link has the address that clients use; this page may be at another name of the service. */
function ownPath(link: string): string {
  const { pathname, search } = new URL(link, location.origin);
  return pathname + search;
}
