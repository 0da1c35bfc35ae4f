/** The dialog that makes a link to one session, and says what its holder will see. */
import { useState } from 'preact/hooks';
import { api, me, sentenceOf } from '../../data/api.ts';
import type { Session } from '../../data/types.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { copy, Time } from '../../parts/text.tsx';

const HOUR_S = 3_600;
const TERMS = [
  [HOUR_S, '1 hour'],
  [24 * HOUR_S, '1 day'],
] as const;

type Link = { url: string; expiresAt: string };

export function ShareDialog({ session, close }: { session: Session; close: () => void }) {
  const [link, setLink] = useState<Link>();
  return (
    <Dialog label="Share the session" close={close}>
      <h2>Share this session</h2>
      <p class="hint">
        Whoever has the link sees this session without a login: its state, its times, and its
        picture, live or recorded, with the addresses of its pages. They can change nothing, and see
        nothing else of the project: no metadata, settings, files or other sessions.
      </p>
      {link === undefined ? (
        <Form session={session} close={close} made={setLink} />
      ) : (
        <Made link={link} close={close} />
      )}
    </Dialog>
  );
}

type FormProps = { session: Session; close: () => void; made(link: Link): void };

function Form({ session, close, made }: FormProps) {
  const [expiresIn, setExpiresIn] = useState(HOUR_S);
  const [hasLog, setHasLog] = useState(false);
  const [error, setError] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const path = `/console/api/v1/sessions/${session.id}/shares`;
      made(await api<Link>(path, { expiresIn, hasLog }));
    } catch (reason) {
      setError(sentenceOf(reason));
      setBusy(false);
    }
  };
  return (
    <form class="share" onSubmit={submit}>
      <Terms chosen={expiresIn} choose={setExpiresIn} />
      <label>
        <input
          type="checkbox"
          checked={hasLog}
          aria-describedby="share-log"
          onChange={({ currentTarget }) => setHasLog(currentTarget.checked)}
        />
        Include the log: commands, network and console
      </label>
      <p id="share-log" class="hint">
        Cookies, headers, passwords and typed text are redacted in it. Addresses, console lines, and
        scripts of clients with what they read from pages are not: they may hold secrets.
      </p>
      <p class="hint">{endOf()}</p>
      {error !== undefined && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      <p class="actions">
        <button type="submit" class="main" disabled={isBusy}>
          Make the link
        </button>
        <button type="button" onClick={close}>
          Cancel
        </button>
      </p>
    </form>
  );
}

function Terms({ chosen, choose }: { chosen: number; choose(seconds: number): void }) {
  return (
    <fieldset>
      <legend>Good for</legend>
      {TERMS.map(([seconds, word]) => (
        <label key={seconds}>
          <input
            type="radio"
            name="term"
            checked={seconds === chosen}
            onChange={() => choose(seconds)}
          />
          {word}
        </label>
      ))}
    </fieldset>
  );
}

function endOf(): string {
  const keyId = me.value?.login?.keyId;
  const early = 'A link is not stored, so it cannot be taken back alone';
  if (typeof keyId !== 'string') return `${early}: it ends when its time is over.`;
  return `${early}: before its time is over it ends with the API key of this login (${keyId}).`;
}

function Made({ link, close }: { link: Link; close: () => void }) {
  return (
    <div class="share">
      <label>
        Link, good until <Time at={link.expiresAt} />
        <input
          readOnly
          value={link.url}
          ref={focused}
          onFocus={({ currentTarget }) => currentTarget.select()}
        />
      </label>
      <p class="actions">
        <button type="button" class="main" onClick={() => void copy(link.url)}>
          Copy the link
        </button>
        <button type="button" onClick={close}>
          Close
        </button>
      </p>
    </div>
  );
}

function focused(element: HTMLInputElement | null): void {
  element?.focus();
}
