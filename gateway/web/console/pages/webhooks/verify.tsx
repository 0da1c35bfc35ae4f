/** Checks the request that a receiver has refused, and says why. */
import { useState } from 'preact/hooks';
import { send } from '../../data/api.ts';
import type { Verified, Webhook } from '../../data/webhooks.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { State } from '../../parts/state.tsx';
import { Foreign, Time } from '../../parts/text.tsx';
import { Form, useSubmit } from './form.tsx';

const HEADERS: [field: string, name: string][] = [
  ['webhookId', 'webhook-id'],
  ['webhookTimestamp', 'webhook-timestamp'],
  ['webhookSignature', 'webhook-signature'],
];

export function VerifySignature({ webhook, close }: { webhook: Webhook; close: () => void }) {
  const [found, setFound] = useState<Verified>();
  const sending = useSubmit(async (form) => {
    setFound(undefined);
    const fields = Object.fromEntries(new FormData(form));
    setFound(await send('POST', `/console/api/v1/webhooks/${webhook.id}/verify`, fields));
  });
  return (
    <Dialog label="Verify a signature" close={close}>
      <Form title="Verify a signature" sending={sending} action="Verify">
        <p>
          Paste what the receiver got. The service compares it with the secrets of this webhook, and
          stores nothing. Headers may be pasted together, one a line, into any of the fields.
        </p>
        {HEADERS.map(([field, name]) => (
          <label key={field}>
            {name}
            <input
              name={field}
              required
              autocomplete="off"
              spellcheck={false}
              onPaste={(event) => pasteHeaders(event)}
            />
          </label>
        ))}
        <label>
          Body, byte for byte
          <textarea name="body" rows={6} spellcheck={false} />
        </label>
        {found !== undefined && <Result found={found} />}
      </Form>
    </Dialog>
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
