/** Commands for who writes functions. */
import type { Command } from './command.ts';

export const FUNCTIONS: readonly Command[] = [
  {
    usage: 'init [directory]',
    says: 'make a small project, ready to publish',
    example: 'tabern init first-function',
    kind: 'local',
    run: async ([directory = '']) => (await import('../../runner/cli/init.ts')).run(directory),
  },
  {
    usage: 'dev <entry>',
    says: "run a project's functions on this machine, again with each change",
    example: 'tabern dev index.ts',
    kind: 'local',
    flags: [
      { flags: '--port <port>', says: 'where to listen', default: '14113' },
      { flags: '--host <host>', says: 'the address to listen on', default: '127.0.0.1' },
    ],
    run: async ([entry = ''], given) => (await import('../../runner/cli/dev.ts')).run(entry, given),
  },
  {
    usage: 'publish <entry>',
    says: 'publish the functions of a source file',
    example: 'tabern publish index.ts',
    kind: 'project',
    run: async ([entry = ''], given) =>
      (await import('../../runner/cli/publish.ts')).run(entry, given),
  },
  {
    usage: 'invoke <function>',
    says: 'run a function, by id or name, and wait for its result',
    example: `tabern invoke title --params '{"url":"https://example.org/"}'`,
    kind: 'project',
    flags: [
      { flags: '--params <json>', says: 'what the handler gets as its params', default: '{}' },
    ],
    run: async ([name = ''], given) =>
      (await import('../../runner/cli/invoke.ts')).run(name, given),
  },
  {
    usage: 'cancel <invocation-id>',
    says: 'end an invocation that waits or runs',
    example: 'tabern cancel 0198c0de-0000-7000-8000-000000000000',
    kind: 'project',
    run: async ([id = ''], given) => (await import('../../runner/cli/cancel.ts')).run(id, given),
  },
  {
    usage: 'logs <invocation-id>',
    says: 'print what an invocation printed',
    example: 'tabern logs 0198c0de-0000-7000-8000-000000000000',
    kind: 'project',
    flags: [
      { flags: '-f, --follow', says: 'print what comes, until its end' },
      { flags: '--build', says: 'the id is a build: print its log' },
    ],
    run: async ([id = ''], given) => (await import('../../runner/cli/logs.ts')).run(id, given),
  },
  {
    usage: 'listen',
    says: "forward the project's events to a URL of this machine",
    example: 'tabern listen --forward-to http://localhost:3000/hook',
    kind: 'project',
    flags: [
      {
        flags: '--forward-to <url>',
        says: 'where to POST them, such as http://localhost:3000/hook',
      },
      { flags: '--types <types>', says: 'only these event types, separated by commas' },
      { flags: '--secret <secret>', says: 'signs them, as whsec_...; one is made when absent' },
    ],
    run: async (_, given) => (await import('../../runner/cli/listen.ts')).run(given),
  },
];
