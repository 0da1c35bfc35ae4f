/** Commands for a project's resources: sessions, contexts, webhooks. */
import type { Command, Flag } from './command.ts';

type Action = import('../../runner/cli/objects.ts').Action;

const ID = '0198c0de-0000-7000-8000-000000000000';

const SESSIONS: readonly Command[] = [
  object('sessions list', '', {
    description: 'list sessions, newest first',
    example: 'tabern sessions list --status RUNNING',
    flags: [
      { flags: '--status <status>', description: 'only sessions in this status, such as RUNNING' },
    ],
  }),
  object('sessions get', '<session-id>', {
    description: 'show a session',
    example: `tabern sessions get ${ID}`,
  }),
  object('sessions create', '', {
    description: 'start a session; prints its id and its connectUrl',
    example: 'tabern sessions create --keep-alive --timeout 3600',
    flags: [
      { flags: '--timeout <seconds>', description: 'timeout of the session, 60 to 21600' },
      { flags: '--keep-alive', description: 'keep running while no client is connected' },
      { flags: '--context <context-id>', description: 'context to load' },
      { flags: '--persist', description: 'save the context when the session ends' },
      { flags: '--body <json>', description: 'further fields of the request' },
    ],
  }),
  object('sessions release', '<session-id>', {
    description: 'end a session',
    example: `tabern sessions release ${ID}`,
  }),
  object('sessions logs', '<session-id>', {
    description: 'print the protocol log of a session',
    example: `tabern sessions logs ${ID} --json`,
  }),
  object('sessions debug', '<session-id>', {
    description: 'print the live view URL of a session',
    example: `tabern sessions debug ${ID}`,
  }),
];

const CONTEXTS: readonly Command[] = [
  object('contexts list', '', {
    description: 'list contexts, newest first',
    example: 'tabern contexts list',
  }),
  object('contexts get', '<context-id>', {
    description: 'show a context',
    example: `tabern contexts get ${ID}`,
  }),
  object('contexts create', '[name]', {
    description: 'create a context; prints its id',
    example: 'tabern contexts create shop',
  }),
  object('contexts delete', '<context-id>', {
    description: 'delete a context and its content',
    example: `tabern contexts delete ${ID}`,
  }),
  {
    usage: 'contexts upload <context-id> <directory>',
    description: 'encrypt a user-data directory and upload it as the content of a context',
    example: `tabern contexts upload ${ID} ./profile`,
    kind: 'project',
    run: async ([id = '', directory = ''], given) =>
      (await import('../../runner/cli/context.ts')).upload([id, directory], given),
  },
  {
    usage: 'contexts download <context-id> <directory>',
    description: 'download the encrypted content of a context into a directory',
    example: `tabern contexts download ${ID} .`,
    kind: 'project',
    run: async ([id = '', directory = ''], given) =>
      (await import('../../runner/cli/context.ts')).download([id, directory], given),
  },
];

const WEBHOOKS: readonly Command[] = [
  object('webhooks list', '', { description: 'list webhooks', example: 'tabern webhooks list' }),
  object('webhooks create', '<endpoint>', {
    description: 'create a webhook; prints its id, and its secret once',
    example:
      'tabern webhooks create https://example.com/hook --events functions.invocations.completed',
    flags: [{ flags: '--events <types>', description: 'event types, comma-separated' }],
  }),
  object('webhooks get', '<webhook-id>', {
    description: 'show a webhook',
    example: `tabern webhooks get ${ID}`,
  }),
  object('webhooks delete', '<webhook-id>', {
    description: 'delete a webhook; pending deliveries are cancelled',
    example: `tabern webhooks delete ${ID}`,
  }),
  object('webhooks rotate', '<webhook-id>', {
    description: 'create a new secret; prints it once',
    example: `tabern webhooks rotate ${ID}`,
    flags: [
      { flags: '--revoke', description: 'revoke the old secrets at once instead of after a day' },
    ],
  }),
  object('webhooks enable', '<webhook-id>', {
    description: 'enable a disabled webhook',
    example: `tabern webhooks enable ${ID}`,
  }),
  object('webhooks test', '<webhook-id>', {
    description: 'send a test event',
    example: `tabern webhooks test ${ID}`,
  }),
  object('webhooks deliveries', '<webhook-id>', {
    description: 'list the deliveries of a webhook, newest first',
    example: `tabern webhooks deliveries ${ID} --status EXHAUSTED`,
    flags: [
      {
        flags: '--status <status>',
        description: 'only deliveries in this status, such as EXHAUSTED',
      },
    ],
  }),
  object('webhooks redeliver', '<webhook-id> <event-id>', {
    description: 'send a delivery again',
    example: `tabern webhooks redeliver ${ID} ${ID}`,
  }),
];

export const OBJECTS: readonly Command[] = [...SESSIONS, ...CONTEXTS, ...WEBHOOKS];

function object(
  action: Action,
  words: string,
  more: { description: string; example: string; flags?: readonly Flag[] },
): Command {
  return {
    usage: `${action} ${words}`.trim(),
    kind: 'project',
    ...more,
    run: async (given, options) =>
      (await import('../../runner/cli/objects.ts')).run(action, given, options),
  };
}
