/** A dialog that starts a session and opens its page. */
import { useState } from 'preact/hooks';
import { api, sentenceOf } from '../../data/api.ts';
import { plain } from '../../data/format.ts';
import { pathOf } from '../../data/route.ts';
import { go, route } from '../../data/router.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { useLoad } from '../../parts/load.tsx';

type Context = { id: string; name?: string | null };

const TIMEOUTS: readonly [seconds: number, words: string][] = [
  [900, '15 minutes'],
  [3_600, '1 hour'],
  [21_600, '6 hours'],
];

export function StartSession({ close }: { close: () => void }) {
  const [error, setError] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const start = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const body = bodyOf(new FormData(event.currentTarget as HTMLFormElement));
      const { id } = await api<{ id: string }>('/v1/sessions', body);
      close();
      go(pathOf(route.value.projectId, 'sessions', id));
    } catch (failure) {
      setError(sentenceOf(failure));
      setBusy(false);
    }
  };
  return (
    <Dialog label="Start a session" close={close}>
      <form class="start" onSubmit={(event) => void start(event)}>
        <h2>Start a session</h2>
        <Fields />
        {error !== undefined && (
          <p class="error" role="alert">
            {error}
          </p>
        )}
        <div class="buttons">
          <button type="button" class="plain" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="main" disabled={isBusy}>
            Start
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Fields() {
  // a project with more has a page of them
  const { value } = useLoad<{ data: Context[] }>('/v1/contexts?limit=100', ['CONTEXTS']);
  return (
    <>
      <label>
        <span>Ends after</span>
        <select name="timeout">
          {TIMEOUTS.map(([seconds, words]) => (
            <option key={seconds} value={seconds}>
              {words}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>Context</span>
        <select name="context">
          <option value="">none: a new profile</option>
          {value?.data.map(({ id, name }) => (
            <option key={id} value={id}>
              {name ? plain(name, 60) : id}
            </option>
          ))}
        </select>
      </label>
      <label class="check">
        <input type="checkbox" name="persist" />
        Save the context when the session ends
      </label>
      <label class="check">
        <input type="checkbox" name="keepAlive" checked />
        Keep it running while no program is connected
      </label>
    </>
  );
}

function bodyOf(form: FormData): object {
  const [id, timeout] = [form.get('context'), Number(form.get('timeout'))];
  const context = { id, persist: form.has('persist') };
  const { projectId } = route.value;
  const browserSettings = id === '' ? {} : { context };
  return { projectId, timeout, keepAlive: form.has('keepAlive'), browserSettings };
}
