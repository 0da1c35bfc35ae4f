/** The login: a key is pasted once, and the service answers with a cookie that no script reads. */
import { useState } from 'preact/hooks';
import { ApiError, api, type Me, sentenceOf } from '../data/api.ts';

export function Login({ loggedIn }: { loggedIn(me: Me): void }) {
  const [error, setError] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const box = form.elements.namedItem('key') as HTMLInputElement;
    const apiKey = box.value.trim();
    if (apiKey === '') return setError('Paste an API key.');
    setBusy(true);
    try {
      await api('/console/login', { apiKey });
      box.value = '';
      loggedIn(await api<Me>('/console/api/v1/me'));
    } catch (reason) {
      const isRefused = reason instanceof ApiError && reason.status === 401;
      setError(isRefused ? 'This key is not valid.' : sentenceOf(reason));
      box.select();
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="login">
      <h1>tabern</h1>
      <form onSubmit={submit}>
        <label for="key">API key</label>
        <input
          id="key"
          name="key"
          type="password"
          autocomplete="off"
          spellcheck={false}
          placeholder="svc_…"
          aria-describedby={error === undefined ? 'key-hint' : 'key-error'}
          aria-invalid={error !== undefined}
          ref={focused}
        />
        <button type="submit" class="main" disabled={isBusy}>
          Log in
        </button>
        {error === undefined ? (
          <p id="key-hint" class="hint">
            The key of a project. It is exchanged for a cookie and is not stored in the browser.
          </p>
        ) : (
          <p id="key-error" class="error" role="alert">
            {error}
          </p>
        )}
      </form>
    </main>
  );
}

function focused(element: HTMLInputElement | null): void {
  element?.focus();
}
