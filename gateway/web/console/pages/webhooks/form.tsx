/** A form of a dialog: it is sent once at a time, and its error is a sentence below it. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { sentenceOf } from '../../data/api.ts';

export type Sending = {
  isBusy: boolean;
  error: string | undefined;
  send(form: HTMLFormElement): void;
};

/** Runs `act` for each submit. */
export function useSubmit(act: (form: HTMLFormElement) => Promise<void>): Sending {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  const run = async (form: HTMLFormElement) => {
    setBusy(true);
    setError(undefined);
    try {
      await act(form);
    } catch (failure) {
      setError(sentenceOf(failure));
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, error, send: (form) => void run(form) };
}

type Props = {
  title: string;
  sending: Sending;
  /** What the button says. */
  action: string;
  isDanger?: boolean;
  children: ComponentChildren;
};

export function Form({ title, sending, action, isDanger = false, children }: Props) {
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        sending.send(event.currentTarget);
      }}
    >
      <h2>{title}</h2>
      {children}
      {sending.error !== undefined && (
        <p class="error" role="alert">
          {sending.error}
        </p>
      )}
      <div class="buttons">
        <button type="submit" class={isDanger ? 'danger' : 'main'} disabled={sending.isBusy}>
          {action}
        </button>
      </div>
    </form>
  );
}
