/** Dialogs that create and change a webhook, and show its new secret once. */
import { useState } from 'preact/hooks';
import { send } from '../../data/api.ts';
import { pathOf } from '../../data/route.ts';
import { go, route } from '../../data/router.ts';
import { EVENT_TYPES, type Webhook } from '../../data/webhooks.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { announce } from '../../parts/notice.tsx';
import { Command } from '../../parts/text.tsx';
import { Form, useSubmit } from './form.tsx';

export function NewWebhook({ close }: { close: () => void }) {
  const [made, setMade] = useState<Webhook & { secret: string }>();
  const create = async (fields: Fields) => setMade(await send('POST', '/v1/webhooks', fields));
  const { projectId } = route.value;
  return (
    <Dialog label="New webhook" close={close} stays={made !== undefined}>
      {made === undefined ? (
        <WebhookForm title="New webhook" submit={create} />
      ) : (
        <Secret
          title="The webhook is created"
          secret={made.secret}
          done={() => {
            close();
            go(pathOf(projectId, 'webhooks', made.id));
          }}
        />
      )}
    </Dialog>
  );
}

type Fields = { endpoint: string; eventTypes: string[] };

export function EditWebhook({ webhook, close }: { webhook: Webhook; close: () => void }) {
  const update = async (fields: Fields) => {
    await send('PATCH', `/v1/webhooks/${webhook.id}`, fields);
    announce('The webhook is changed.');
    close();
  };
  return (
    <Dialog label="Change the webhook" close={close}>
      <WebhookForm title="Change the webhook" webhook={webhook} submit={update} />
    </Dialog>
  );
}

type FormProps = {
  title: string;
  webhook?: Webhook;
  submit: (fields: Fields) => Promise<void>;
};

function WebhookForm({ title, webhook, submit }: FormProps) {
  const known = new Set(webhook?.eventTypes ?? EVENT_TYPES.slice(0, 2));
  const types = [...new Set([...EVENT_TYPES, ...known])];
  const sending = useSubmit((form) => {
    const data = new FormData(form);
    const eventTypes = data.getAll('eventTypes').map(String);
    if (eventTypes.length === 0) throw new Error('choose at least one event type');
    return submit({ endpoint: String(data.get('endpoint')).trim(), eventTypes });
  });
  return (
    <Form title={title} sending={sending} action={webhook === undefined ? 'Create' : 'Change'}>
      <label>
        Endpoint
        <input
          name="endpoint"
          type="url"
          required
          maxLength={2048}
          autocomplete="off"
          spellcheck={false}
          placeholder="https://example.com/hook"
          defaultValue={webhook?.endpoint ?? ''}
        />
      </label>
      <fieldset>
        <legend>Event types</legend>
        {types.map((type) => (
          <label key={type} class="check">
            <input
              type="checkbox"
              name="eventTypes"
              value={type}
              defaultChecked={known.has(type)}
            />
            {type}
          </label>
        ))}
      </fieldset>
      {webhook !== undefined && (
        <p class="none">
          A new endpoint starts without failures, and enables the webhook. Deliveries that wait for
          an event type that is taken away are cancelled.
        </p>
      )}
    </Form>
  );
}

export function RotateSecret({ webhook, close }: { webhook: Webhook; close: () => void }) {
  const [secret, setSecret] = useState<string>();
  const sending = useSubmit(async (form) => {
    const revokeImmediately = new FormData(form).get('revoke') !== null;
    const path = `/v1/webhooks/${webhook.id}/secret`;
    const made = await send<{ secret: string }>('POST', path, { revokeImmediately });
    setSecret(made.secret);
  });
  return (
    <Dialog label="Rotate the secret" close={close} stays={secret !== undefined}>
      {secret === undefined ? (
        <Form title="Rotate the secret" sending={sending} action="Rotate">
          <p>
            A new secret signs from now on. The present one signs beside it for 24 hours, so that
            the receiver can change over.
          </p>
          <label class="check">
            <input type="checkbox" name="revoke" />
            Revoke the present secrets at once
          </label>
        </Form>
      ) : (
        <Secret title="The new secret" secret={secret} done={close} />
      )}
    </Dialog>
  );
}

type SecretProps = { title: string; secret: string; done: () => void };

/** The only time that a secret is on a page. */
function Secret({ title, secret, done }: SecretProps) {
  return (
    <div class="form">
      <h2>{title}</h2>
      <p>The signing secret is shown once. Store it where the receiver reads it.</p>
      <Command text={secret} label="Copy the secret" />
      <div class="buttons">
        <button type="button" class="main" onClick={done}>
          Done
        </button>
      </div>
    </div>
  );
}
