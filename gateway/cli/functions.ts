/** Commands for developers of functions. */
import { type Command, flag } from './command.ts';
import { ownCommand } from './own-command.ts';

/** The built console, which has the page of `tabern dev`. */
const CONSOLE = new URL('../web/console/gen/', import.meta.url);

export const FUNCTIONS: readonly Command[] = [
  {
    usage: 'init [directory]',
    description: 'create a small project, ready to publish',
    example: 'tabern init first-function',
    kind: 'local',
    run: async ([directory = '']) =>
      (await import('../../runner/cli/init.ts')).run(directory, ownCommand),
  },
  {
    usage: 'dev <entry>',
    description: "run a project's functions on this machine and reload on changes",
    example: 'tabern dev index.ts',
    kind: 'local',
    flags: [
      flag('--port <port>', 'port to listen on', '14113'),
      flag('--host <host>', 'address to listen on', '127.0.0.1'),
    ],
    run: async ([entry = ''], given) =>
      (await import('../../runner/cli/dev.ts')).run(entry, given, CONSOLE),
  },
  {
    usage: 'publish <entry>',
    description: 'publish the functions of a source file',
    example: 'tabern publish index.ts',
    kind: 'project',
    run: async ([entry = ''], given) =>
      (await import('../../runner/cli/publish.ts')).run(entry, given),
  },
  {
    usage: 'invoke <function>',
    description: 'run a function, by id or name, and wait for its result',
    example: `tabern invoke title --params '{"url":"https://example.org/"}'`,
    kind: 'project',
    flags: [flag('--params <json>', 'params of the handler', '{}')],
    run: async ([name = ''], given) =>
      (await import('../../runner/cli/invoke.ts')).run(name, given),
  },
  {
    usage: 'cancel <invocation-id>',
    description: 'cancel a pending or running invocation',
    example: 'tabern cancel 0198c0de-0000-7000-8000-000000000000',
    kind: 'project',
    run: async (words, given) =>
      (await import('../../runner/cli/objects.ts')).run('cancel', words, given),
  },
  {
    usage: 'logs <invocation-id>',
    description: 'print the log of an invocation',
    example: 'tabern logs 0198c0de-0000-7000-8000-000000000000',
    kind: 'project',
    flags: [
      flag('-f, --follow', 'follow the log until the end'),
      flag('--build', 'the id is a build id: print the log of the build'),
    ],
    run: async ([id = ''], given) => (await import('../../runner/cli/logs.ts')).run(id, given),
  },
  {
    usage: 'listen',
    description: "forward the project's events to a local URL",
    example: 'tabern listen --forward-to http://localhost:3000/hook',
    kind: 'project',
    flags: [
      flag('--forward-to <url>', 'URL to POST the events to, such as http://localhost:3000/hook'),
      flag('--types <types>', 'only these event types, comma-separated'),
      flag(
        '--secret <secret>',
        'signing secret (whsec_...); absent: one for this project and URL, kept for later runs',
      ),
    ],
    run: async (_, given) => (await import('../../runner/cli/listen.ts')).run(given),
  },
];
