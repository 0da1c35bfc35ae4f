/** Commands for developers of functions. */
import type { Command } from './command.ts';

export const FUNCTIONS: readonly Command[] = [
  {
    usage: 'init [directory]',
    description: 'create a small project, ready to publish',
    example: 'tabern init first-function',
    kind: 'local',
    run: async ([directory = '']) => (await import('../../runner/cli/init.ts')).run(directory),
  },
  {
    usage: 'dev <entry>',
    description: "run a project's functions on this machine and reload on changes",
    example: 'tabern dev index.ts',
    kind: 'local',
    flags: [
      { flags: '--port <port>', description: 'port to listen on', default: '14113' },
      { flags: '--host <host>', description: 'address to listen on', default: '127.0.0.1' },
    ],
    run: async ([entry = ''], given) => (await import('../../runner/cli/dev.ts')).run(entry, given),
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
    flags: [{ flags: '--params <json>', description: 'params of the handler', default: '{}' }],
    run: async ([name = ''], given) =>
      (await import('../../runner/cli/invoke.ts')).run(name, given),
  },
  {
    usage: 'cancel <invocation-id>',
    description: 'cancel a pending or running invocation',
    example: 'tabern cancel 0198c0de-0000-7000-8000-000000000000',
    kind: 'project',
    run: async ([id = ''], given) => (await import('../../runner/cli/cancel.ts')).run(id, given),
  },
  {
    usage: 'logs <invocation-id>',
    description: 'print the log of an invocation',
    example: 'tabern logs 0198c0de-0000-7000-8000-000000000000',
    kind: 'project',
    flags: [
      { flags: '-f, --follow', description: 'follow the log until the end' },
      { flags: '--build', description: 'the id is a build id: print the log of the build' },
    ],
    run: async ([id = ''], given) => (await import('../../runner/cli/logs.ts')).run(id, given),
  },
  {
    usage: 'listen',
    description: "forward the project's events to a local URL",
    example: 'tabern listen --forward-to http://localhost:3000/hook',
    kind: 'project',
    flags: [
      {
        flags: '--forward-to <url>',
        description: 'URL to POST the events to, such as http://localhost:3000/hook',
      },
      { flags: '--types <types>', description: 'only these event types, comma-separated' },
      {
        flags: '--secret <secret>',
        description: 'signing secret (whsec_...); generated when absent',
      },
    ],
    run: async (_, given) => (await import('../../runner/cli/listen.ts')).run(given),
  },
];
