/** Commands for a project's resources: functions, secrets, schedules, sessions and others. */
import { type Command, flag, wordsOf } from './command.ts';

type Action = import('../../runner/cli/objects.ts').Action;

const ID = '0198c0de-0000-7000-8000-000000000000';

const PUBLISHED: readonly Command[] = [
  object('functions list', 'list functions, newest first'),
  object('functions get <function>', 'show a function, by id or name', {
    example: 'tabern functions get title',
  }),
  object('functions versions <function>', 'list the versions of a function, newest first', {
    example: 'tabern functions versions title',
  }),
  {
    usage: 'functions delete <function>',
    description: 'delete a function, by id or name, with its versions, invocations and logs',
    example: 'tabern functions delete title',
    kind: 'project',
    flags: [flag('--yes', 'do not ask; required without a terminal')],
    run: async ([name = ''], given) =>
      (await import('../../runner/cli/delete-function.ts')).run(name, given),
  },
  object(
    'invocations list <function>',
    'list the invocations of a function, newest version first',
    {
      example: 'tabern invocations list title --status FAILED',
      flags: [flag('--status <status>', 'only invocations in this status, such as FAILED')],
    },
  ),
  object('invocations get <invocation-id>', 'show an invocation'),
  object('builds list', 'list builds, newest first', {
    example: 'tabern builds list --status FAILED',
    flags: [flag('--status <status>', 'only builds in this status, such as FAILED')],
  }),
  object('builds get <build-id>', 'show a build'),
  object('builds logs <build-id>', 'print the log of a build'),
];

const RULES = [
  flag('--time-zone <name>', 'time zone of the times, such as Europe/Berlin; UTC if not given'),
  flag('--params <json>', 'params of each invocation'),
  flag('--overlap <rule>', 'while the last invocation runs: skip, the default, or allow'),
  flag('--catch-up <rule>', 'after a downtime: none, the default, or last'),
];

const SCHEDULES: readonly Command[] = [
  object('schedules list <function>', 'list the schedules of a function, newest first', {
    example: 'tabern schedules list title',
  }),
  object('schedules get <schedule-id>', 'show a schedule'),
  object(
    'schedules create <function> <cron>',
    'run a function at the times of a cron text; prints the id of the schedule',
    {
      example: `tabern schedules create title '0 9 * * MON-FRI' --time-zone Europe/Berlin`,
      flags: [...RULES, flag('--disabled', 'create it paused')],
    },
  ),
  object('schedules update <schedule-id>', 'change a schedule', {
    example: `tabern schedules update ${ID} --cron '*/30 * * * *'`,
    flags: [flag('--cron <text>', 'five fields'), ...RULES],
  }),
  object('schedules enable <schedule-id>', 'continue with the next time'),
  object('schedules disable <schedule-id>', 'pause a schedule'),
  object('schedules delete <schedule-id>', 'delete a schedule; its invocations are kept'),
];

const SECRETS: readonly Command[] = [
  secret('list', 'list the secrets of a project by name; no command shows a value'),
  {
    ...secret('set <name>', 'store a secret: asks for its value, or reads it from stdin or a file'),
    example: 'tabern secrets set SHOP_TOKEN --from-file token.txt',
    flags: [flag('--from-file <path>', 'file with the value; without one line break at its end')],
  },
  secret('delete <name>', 'delete a secret, and detach it from all functions'),
  secret('attach <name> <function>', 'give a secret to a function, from its next invocation on'),
  secret('detach <name> <function>', 'take a secret from a function'),
];

const SESSIONS: readonly Command[] = [
  object('sessions list', 'list sessions, newest first', {
    example: 'tabern sessions list --status RUNNING',
    flags: [flag('--status <status>', 'only sessions in this status, such as RUNNING')],
  }),
  object('sessions get <session-id>', 'show a session'),
  object('sessions create', 'start a session; prints its id and its connectUrl', {
    example: 'tabern sessions create --keep-alive --timeout 3600',
    flags: [
      flag('--timeout <seconds>', 'timeout of the session, 60 to 21600'),
      flag('--keep-alive', 'keep running while no client is connected'),
      flag('--context <context-id>', 'context to load'),
      flag('--persist', 'save the context when the session ends'),
      flag('--body <json>', 'further fields of the request'),
    ],
  }),
  object('sessions release <session-id>', 'end a session'),
  object('sessions logs <session-id>', 'print the protocol log of a session', {
    example: `tabern sessions logs ${ID} --json`,
  }),
  object('sessions debug <session-id>', 'print the live view URL of a session'),
];

const CONTEXTS: readonly Command[] = [
  object('contexts list', 'list contexts, newest first'),
  object('contexts get <context-id>', 'show a context'),
  object('contexts create [name]', 'create a context; prints its id', {
    example: 'tabern contexts create shop',
  }),
  object('contexts delete <context-id>', 'delete a context and its content'),
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
  object('webhooks list', 'list webhooks'),
  object('webhooks create <endpoint>', 'create a webhook; prints its id, and its secret once', {
    example:
      'tabern webhooks create https://example.com/hook --events functions.invocations.completed',
    flags: [flag('--events <types>', 'event types, comma-separated')],
  }),
  object('webhooks get <webhook-id>', 'show a webhook'),
  object('webhooks delete <webhook-id>', 'delete a webhook; pending deliveries are cancelled'),
  object('webhooks rotate <webhook-id>', 'create a new secret; prints it once', {
    flags: [flag('--revoke', 'revoke the old secrets at once instead of after a day')],
  }),
  object('webhooks enable <webhook-id>', 'enable a disabled webhook'),
  object('webhooks test <webhook-id>', 'send a test event'),
  object('webhooks deliveries <webhook-id>', 'list the deliveries of a webhook, newest first', {
    example: `tabern webhooks deliveries ${ID} --status EXHAUSTED`,
    flags: [flag('--status <status>', 'only deliveries in this status, such as EXHAUSTED')],
  }),
  object('webhooks redeliver <webhook-id> <event-id>', 'send a delivery again'),
];

export const OBJECTS: readonly Command[] = [
  ...PUBLISHED,
  ...SCHEDULES,
  ...SECRETS,
  ...SESSIONS,
  ...CONTEXTS,
  ...WEBHOOKS,
];

type SecretUsage =
  | 'list'
  | 'set <name>'
  | 'delete <name>'
  | `${'attach' | 'detach'} <name> <function>`;

function secret(usage: SecretUsage, description: string): Command {
  const named = usage.replace('<name>', 'SHOP_TOKEN').replace('<function>', 'title');
  return {
    usage: `secrets ${usage}`,
    description,
    example: `tabern secrets ${named}`,
    kind: 'project',
    run: async (given, options) =>
      (await import('../../runner/cli/secrets.ts')).run(usage, given, options),
  };
}

/** The example is the usage with ids, unless it is given. */
function object(
  usage: Action | `${Action} ${'<' | '['}${string}`,
  description: string,
  more: Partial<Pick<Command, 'example' | 'flags'>> = {},
): Command {
  const action = wordsOf(usage).join(' ') as Action;
  return {
    usage,
    description,
    example: `tabern ${usage.replaceAll(/<[\w-]+-id>/g, ID)}`,
    kind: 'project',
    ...more,
    run: async (given, options) =>
      (await import('../../runner/cli/objects.ts')).run(action, given, options),
  };
}
