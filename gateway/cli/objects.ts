/** Commands for what a project has: sessions, contexts, webhooks. */
import type { Command, Flag } from './command.ts';

type Action = import('../../runner/cli/objects.ts').Action;

const ID = '0198c0de-0000-7000-8000-000000000000';

const SESSIONS: readonly Command[] = [
  object('sessions list', '', {
    says: 'list sessions, newest first',
    example: 'tabern sessions list --status RUNNING',
    flags: [{ flags: '--status <status>', says: 'only these, such as RUNNING' }],
  }),
  object('sessions get', '<session-id>', {
    says: 'show a session',
    example: `tabern sessions get ${ID}`,
  }),
  object('sessions create', '', {
    says: 'start a session; prints its id and its connectUrl',
    example: 'tabern sessions create --keep-alive --timeout 3600',
    flags: [
      { flags: '--timeout <seconds>', says: 'how long it lives, 60 to 21600' },
      { flags: '--keep-alive', says: 'it goes on when its last client has left' },
      { flags: '--context <context-id>', says: 'what it starts from' },
      { flags: '--persist', says: 'and is saved to at its end' },
      { flags: '--body <json>', says: 'whatever else the API takes' },
    ],
  }),
  object('sessions release', '<session-id>', {
    says: 'end a session',
    example: `tabern sessions release ${ID}`,
  }),
  object('sessions logs', '<session-id>', {
    says: 'print the protocol log of a session',
    example: `tabern sessions logs ${ID} --json`,
  }),
  object('sessions debug', '<session-id>', {
    says: 'print the address of the live view of a session',
    example: `tabern sessions debug ${ID}`,
  }),
];

const CONTEXTS: readonly Command[] = [
  object('contexts list', '', {
    says: 'list contexts, newest first',
    example: 'tabern contexts list',
  }),
  object('contexts get', '<context-id>', {
    says: 'show a context',
    example: `tabern contexts get ${ID}`,
  }),
  object('contexts create', '[name]', {
    says: 'make a context; prints its id',
    example: 'tabern contexts create shop',
  }),
  object('contexts delete', '<context-id>', {
    says: 'delete a context with what it holds',
    example: `tabern contexts delete ${ID}`,
  }),
  {
    usage: 'contexts upload <context-id> <directory>',
    says: 'encrypt a user-data directory and make it what the context holds',
    example: `tabern contexts upload ${ID} ./profile`,
    kind: 'project',
    run: async ([id = '', directory = ''], given) =>
      (await import('../../runner/cli/context.ts')).upload([id, directory], given),
  },
  {
    usage: 'contexts download <context-id> <directory>',
    says: 'keep what the context holds, encrypted as it is, as a file in the directory',
    example: `tabern contexts download ${ID} .`,
    kind: 'project',
    run: async ([id = '', directory = ''], given) =>
      (await import('../../runner/cli/context.ts')).download([id, directory], given),
  },
];

const WEBHOOKS: readonly Command[] = [
  object('webhooks list', '', { says: 'list webhooks', example: 'tabern webhooks list' }),
  object('webhooks create', '<endpoint>', {
    says: 'make a webhook; prints its id, and its secret this once',
    example:
      'tabern webhooks create https://example.com/hook --events functions.invocations.completed',
    flags: [{ flags: '--events <types>', says: 'event types, separated by commas' }],
  }),
  object('webhooks get', '<webhook-id>', {
    says: 'show a webhook',
    example: `tabern webhooks get ${ID}`,
  }),
  object('webhooks delete', '<webhook-id>', {
    says: 'delete a webhook; what waits is cancelled',
    example: `tabern webhooks delete ${ID}`,
  }),
  object('webhooks rotate', '<webhook-id>', {
    says: 'make a new secret; prints it this once',
    example: `tabern webhooks rotate ${ID}`,
    flags: [{ flags: '--revoke', says: 'the old ones end at once, not after a day' }],
  }),
  object('webhooks enable', '<webhook-id>', {
    says: 'let a webhook that was disabled receive again',
    example: `tabern webhooks enable ${ID}`,
  }),
  object('webhooks test', '<webhook-id>', {
    says: 'send a test event',
    example: `tabern webhooks test ${ID}`,
  }),
  object('webhooks deliveries', '<webhook-id>', {
    says: 'list what was sent, or is to be, newest first',
    example: `tabern webhooks deliveries ${ID} --status EXHAUSTED`,
    flags: [{ flags: '--status <status>', says: 'only these, such as EXHAUSTED' }],
  }),
  object('webhooks redeliver', '<webhook-id> <event-id>', {
    says: 'send an event again',
    example: `tabern webhooks redeliver ${ID} ${ID}`,
  }),
];

export const OBJECTS: readonly Command[] = [...SESSIONS, ...CONTEXTS, ...WEBHOOKS];

function object(
  action: Action,
  words: string,
  more: { says: string; example: string; flags?: readonly Flag[] },
): Command {
  return {
    usage: `${action} ${words}`.trim(),
    kind: 'project',
    ...more,
    run: async (given, options) =>
      (await import('../../runner/cli/objects.ts')).run(action, given, options),
  };
}
