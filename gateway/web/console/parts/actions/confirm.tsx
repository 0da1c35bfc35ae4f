/** A dialog that asks before something ends, or that does something which may fail. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { sentenceOf } from '../../data/api.ts';
import { Dialog } from '../dialog.tsx';

type Props = {
  title: string;
  /** The word of the button. */
  action: string;
  isDangerous?: boolean;
  /** False while a field is not filled. */
  isReady?: boolean;
  /** The dialog closes after it; a failure is shown. */
  run(): Promise<void>;
  close(): void;
  /** Called instead of `close` when nothing was done. */
  cancel?(): void;
  children: ComponentChildren;
};

export function Confirm(props: Props) {
  const { title, action, isDangerous = false, isReady = true, run, close, children } = props;
  const { cancel = close } = props;
  const [state, setState] = useState<{ isBusy: boolean; error?: string }>({ isBusy: false });
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (state.isBusy || !isReady) return;
    setState({ isBusy: true });
    try {
      await run();
      close();
    } catch (error) {
      setState({ isBusy: false, error: sentenceOf(error) });
    }
  };
  return (
    <Dialog label={title} close={cancel}>
      <form class="confirm" onSubmit={submit}>
        <h2>{title}</h2>
        {children}
        {state.error !== undefined && (
          <p class="error" role="alert">
            {state.error}
          </p>
        )}
        <div class="confirm-buttons">
          <button type="button" onClick={cancel}>
            Cancel
          </button>
          <button
            type="submit"
            class={isDangerous ? 'danger' : 'main'}
            disabled={state.isBusy || !isReady}
          >
            {state.isBusy ? 'Working…' : action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
