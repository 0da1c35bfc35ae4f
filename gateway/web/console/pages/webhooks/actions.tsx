/** What can be done with a webhook. */
import { useState } from 'preact/hooks';
import { api, send, sentenceOf } from '../../data/api.ts';
import { isUtc, now } from '../../data/clock.ts';
import { pathOf } from '../../data/route.ts';
import { go, route } from '../../data/router.ts';
import type { Webhook } from '../../data/webhooks.ts';
import { Confirm } from '../../parts/actions/confirm.tsx';
import { announce } from '../../parts/notice.tsx';
import { Foreign } from '../../parts/text.tsx';
import { EditWebhook, RotateSecret } from './change.tsx';
import { VerifySignature } from './verify.tsx';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

const DIALOGS = {
  recover: Recover,
  verify: VerifySignature,
  rotate: RotateSecret,
  edit: EditWebhook,
  remove: Delete,
};
type Name = keyof typeof DIALOGS;
const BUTTONS: [Name, string][] = [
  ['recover', 'Recover…'],
  ['verify', 'Verify a signature…'],
  ['rotate', 'Rotate the secret…'],
  ['edit', 'Change…'],
];

type Props = { webhook: Webhook; again: () => void };

export function Actions({ webhook, again }: Props) {
  const [open, setOpen] = useState<Name>();
  const act = useAct(`/v1/webhooks/${webhook.id}`, again);
  const Shown = open === undefined ? undefined : DIALOGS[open];
  return (
    <>
      <div class="webhook-actions">
        {webhook.status === 'DISABLED' && (
          <button
            type="button"
            class="main"
            disabled={act.isBusy}
            onClick={() => act.run('enable', 'The webhook is enabled.')}
          >
            Enable
          </button>
        )}
        <button
          type="button"
          disabled={act.isBusy}
          onClick={() => act.run('test', 'A test event is sent.')}
        >
          Send a test
        </button>
        {BUTTONS.map(([name, text]) => (
          <button key={name} type="button" onClick={() => setOpen(name)}>
            {text}
          </button>
        ))}
        <button type="button" class="danger" onClick={() => setOpen('remove')}>
          Delete…
        </button>
      </div>
      {act.error !== undefined && (
        <p class="error" role="alert">
          {act.error}
        </p>
      )}
      {Shown !== undefined && <Shown webhook={webhook} close={() => setOpen(undefined)} />}
    </>
  );
}

/** Actions without a form. */
function useAct(path: string, again: () => void) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  const run = async (action: string, done: string) => {
    setBusy(true);
    setError(undefined);
    try {
      await send('POST', `${path}/${action}`);
      announce(done);
      again();
    } catch (failure) {
      setError(sentenceOf(failure));
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, error, run: (action: string, done: string) => void run(action, done) };
}

type DialogProps = { webhook: Webhook; close: () => void };

/** Sends again what was skipped or given up since a time. */
function Recover({ webhook, close }: DialogProps) {
  const { id, disabledAt, failingSince } = webhook;
  const lastDay = new Date(now.peek() - DAY_MS).toISOString();
  const [since, setSince] = useState(() => inputText(disabledAt ?? failingSince ?? lastDay));
  const run = async () => {
    const body = { since: timeOf(since) };
    const { recovered } = await api<{ recovered: number }>(`/v1/webhooks/${id}/recover`, body);
    announce(`${recovered === 1 ? '1 delivery is' : `${recovered} deliveries are`} sent again.`);
  };
  return (
    <Confirm title="Recover" action="Send again" isReady={since !== ''} run={run} close={close}>
      <p>
        Deliveries that were skipped or given up since this time are sent again, oldest first, with
        the whole retry schedule: 10,000 at most.
      </p>
      <label>
        Since ({isUtc.value ? 'UTC' : 'local time'}, at most 30 days ago)
        <input
          type="datetime-local"
          value={since}
          onInput={({ currentTarget }) => setSince(currentTarget.value)}
        />
      </label>
    </Confirm>
  );
}

/** The time as a field has it, in the zone of the page. Rounded down to the minute. */
function inputText(iso: string): string {
  const at = new Date(iso);
  const shift = isUtc.value ? 0 : at.getTimezoneOffset() * MINUTE_MS;
  return new Date(at.getTime() - shift).toISOString().slice(0, 16);
}

function timeOf(text: string): string {
  const at = new Date(isUtc.value ? `${text}Z` : text);
  if (Number.isNaN(at.getTime())) throw new Error('this is no time');
  return at.toISOString();
}

/** Asks for the host of the endpoint, so that no other webhook is deleted. */
function Delete({ webhook, close }: DialogProps) {
  const { id, endpoint } = webhook;
  const host = URL.canParse(endpoint) ? new URL(endpoint).host : endpoint;
  const [typed, setTyped] = useState('');
  const run = async () => {
    await send('DELETE', `/v1/webhooks/${id}`);
    announce('The webhook is deleted.');
    go(pathOf(route.value.projectId, 'webhooks'));
  };
  return (
    <Confirm
      title="Delete the webhook"
      action="Delete"
      isDangerous
      isReady={typed.trim() === host}
      run={run}
      close={close}
    >
      <p>
        Its deliveries end, and its secrets are removed. This cannot be undone. Type{' '}
        <strong>
          <Foreign text={host} max={255} />
        </strong>{' '}
        to delete it.
      </p>
      <label>
        Host of the endpoint
        <input
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      </label>
    </Confirm>
  );
}
