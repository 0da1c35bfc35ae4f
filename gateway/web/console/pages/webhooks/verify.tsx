/** Checks the request that a receiver has refused, and says why. */
import { useState } from 'preact/hooks';
import { api, sentenceOf } from '../../data/api.ts';
import type { Verified, Webhook } from '../../data/webhooks.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { State } from '../../parts/state.tsx';
import { Foreign, Time } from '../../parts/text.tsx';

const HEADERS: [field: string, name: string][] = [
  ['webhookId', 'webhook-id'],
  ['webhookTimestamp', 'webhook-timestamp'],
  ['webhookSignature', 'webhook-signature'],
];

export function VerifySignature({ webhook, close }: { webhook: Webhook; close: () => void }) {
  const [state, setState] = useState<{ isBusy: boolean; found?: Verified; error?: string }>({
    isBusy: false,
  });
  const verify = async (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const fields = Object.fromEntries(new FormData(event.currentTarget));
    setState({ isBusy: true });
    try {
      const path = `/console/api/v1/webhooks/${webhook.id}/verify`;
      setState({ isBusy: false, found: await api<Verified>(path, fields) });
    } catch (error) {
      setState({ isBusy: false, error: sentenceOf(error) });
    }
  };
  const { isBusy, found, error } = state;
  return (
    <Dialog label="Verify a signature" close={close}>
      <form class="confirm" onSubmit={verify}>
        <h2>Verify a signature</h2>
        <p>
          Paste what the receiver got. The service compares it with the secrets of this webhook, and
          stores nothing. Headers may be pasted together, one a line, into any of the fields.
        </p>
        <RequestFields />
        {error !== undefined && (
          <p class="error" role="alert">
            {error}
          </p>
        )}
        {found !== undefined && <Result found={found} />}
        <div class="confirm-buttons">
          <button type="button" onClick={close}>
            Close
          </button>
          <button type="submit" class="main" disabled={isBusy}>
            Verify
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function RequestFields() {
  return (
    <>
      {HEADERS.map(([field, name]) => (
        <label key={field}>
          {name}
          <input
            name={field}
            required
            autocomplete="off"
            spellcheck={false}
            onPaste={pasteHeaders}
          />
        </label>
      ))}
      <label>
        Body, byte for byte
        <textarea name="body" rows={6} spellcheck={false} />
      </label>
    </>
  );
}

/** Lines such as `webhook-id: …` go into their fields. */
function pasteHeaders(event: ClipboardEvent & { currentTarget: HTMLInputElement }): void {
  const text = event.clipboardData?.getData('text/plain') ?? '';
  const { form } = event.currentTarget;
  for (const [field, name] of HEADERS) {
    const value = new RegExp(`^\\s*${name}\\s*:\\s*(.+)$`, 'im').exec(text)?.[1];
    const input = form?.elements.namedItem(field);
    if (value === undefined || !(input instanceof HTMLInputElement)) continue;
    event.preventDefault();
    input.value = value.trim();
  }
}

function Result({ found }: { found: Verified }) {
  const { isAccepted, isSigned, secretCreatedAt, secretExpiresAt, findings } = found;
  const word = isAccepted ? 'A receiver accepts it' : isSigned ? 'Signed, but refused' : 'Refused';
  return (
    <div class="verified" role="status">
      <State name={isAccepted ? 'done' : 'failed'} word={word} />
      {secretCreatedAt !== undefined && (
        <p>
          Signed with the secret of <Time at={secretCreatedAt} />
          {secretExpiresAt === undefined ? (
            ', which is the newest.'
          ) : (
            <>
              , which ends at <Time at={secretExpiresAt} />.
            </>
          )}
        </p>
      )}
      <ul>
        {findings.map(({ code, message }) => (
          <li key={code}>
            <Foreign text={message} max={1_000} />
          </li>
        ))}
      </ul>
    </div>
  );
}
