/** Dialogs that create and change a webhook, and show its new secret once. */
import { useState } from 'preact/hooks';
import { api, send } from '../../data/api.ts';
import { pathOf } from '../../data/route.ts';
import { go, route } from '../../data/router.ts';
import { EVENT_TYPES, type Webhook } from '../../data/webhooks.ts';
import { Confirm } from '../../parts/actions/confirm.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { announce } from '../../parts/notice.tsx';
import { Command } from '../../parts/text.tsx';

type Fields = { endpoint: string; eventTypes: readonly string[] };
type WithSecret = Webhook & { secret: string };

export function NewWebhook({ close }: { close: () => void }) {
  const [fields, setFields] = useState<Fields>({
    endpoint: '',
    eventTypes: EVENT_TYPES.slice(0, 2),
  });
  const [made, setMade] = useState<WithSecret>();
  if (made !== undefined) {
    const done = () => {
      close();
      go(pathOf(route.value.projectId, 'webhooks', made.id));
    };
    return <Secret title="The webhook is created" secret={made.secret} done={done} />;
  }
  return (
    <Confirm
      title="New webhook"
      action="Create"
      isReady={isWhole(fields)}
      run={async () => setMade(await api<WithSecret>('/v1/webhooks', fields))}
      close={() => undefined}
      cancel={close}
    >
      <WebhookFields fields={fields} set={setFields} />
    </Confirm>
  );
}

export function EditWebhook({ webhook, close }: { webhook: Webhook; close: () => void }) {
  const [fields, setFields] = useState<Fields>(webhook);
  const { endpoint, eventTypes } = fields;
  const run = async () => {
    await send('PATCH', `/v1/webhooks/${webhook.id}`, { endpoint, eventTypes });
    announce('The webhook is changed.');
  };
  return (
    <Confirm
      title="Change the webhook"
      action="Change"
      isReady={isWhole(fields)}
      run={run}
      close={close}
    >
      <WebhookFields fields={fields} set={setFields} />
      <p class="none">
        A new endpoint starts without failures, and enables the webhook. Deliveries that wait for an
        event type that is taken away are cancelled.
      </p>
    </Confirm>
  );
}

function isWhole({ endpoint, eventTypes }: Fields): boolean {
  return endpoint.trim() !== '' && eventTypes.length > 0;
}

type FieldsProps = { fields: Fields; set: (fields: Fields) => void };

function WebhookFields({ fields, set }: FieldsProps) {
  const { endpoint, eventTypes } = fields;
  const all = [...new Set([...EVENT_TYPES, ...eventTypes])];
  const without = (type: string) => eventTypes.filter((one) => one !== type);
  return (
    <>
      <label>
        Endpoint
        <input
          type="url"
          maxLength={2048}
          autocomplete="off"
          spellcheck={false}
          placeholder="https://example.com/hook"
          value={endpoint}
          onInput={({ currentTarget }) => set({ ...fields, endpoint: currentTarget.value })}
        />
      </label>
      <fieldset>
        <legend>Event types{eventTypes.length === 0 && ': choose at least one'}</legend>
        {all.map((type) => (
          <label key={type}>
            <input
              type="checkbox"
              checked={eventTypes.includes(type)}
              onChange={({ currentTarget: { checked } }) =>
                set({ ...fields, eventTypes: checked ? [...eventTypes, type] : without(type) })
              }
            />
            {type}
          </label>
        ))}
      </fieldset>
    </>
  );
}

export function RotateSecret({ webhook, close }: { webhook: Webhook; close: () => void }) {
  const [revokeImmediately, setRevoke] = useState(false);
  const [secret, setSecret] = useState<string>();
  if (secret !== undefined) return <Secret title="The new secret" secret={secret} done={close} />;
  const run = async () => {
    const path = `/v1/webhooks/${webhook.id}/secret`;
    setSecret((await api<{ secret: string }>(path, { revokeImmediately })).secret);
  };
  return (
    <Confirm
      title="Rotate the secret"
      action="Rotate"
      run={run}
      close={() => undefined}
      cancel={close}
    >
      <p>
        A new secret signs from now on. The present one signs beside it for 24 hours, so that the
        receiver can change over.
      </p>
      <label>
        <input
          type="checkbox"
          checked={revokeImmediately}
          onChange={({ currentTarget }) => setRevoke(currentTarget.checked)}
        />
        Revoke the present secrets at once
      </label>
    </Confirm>
  );
}

type SecretProps = { title: string; secret: string; done: () => void };

/** The only time that a secret is on a page. */
function Secret({ title, secret, done }: SecretProps) {
  return (
    <Dialog label={title} close={done} stays>
      <div class="confirm">
        <h2>{title}</h2>
        <p>The signing secret is shown once. Store it where the receiver reads it.</p>
        <Command text={secret} label="Copy the secret" />
        <div class="confirm-buttons">
          <button type="button" class="main" onClick={done}>
            Done
          </button>
        </div>
      </div>
    </Dialog>
  );
}
