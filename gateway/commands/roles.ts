/** Commands that run the service, or a part of it. */
import { giveBackAtRest } from '../../proto/rest.ts';
import { environment } from '../config.ts';
import type { Command } from './command.ts';
import { version } from './version.ts';

const PARTS: readonly Command[] = [
  {
    usage: 'serve',
    says: 'run everything here',
    example: 'tabern serve',
    kind: 'role',
    run: async () => (await import('../serve.ts')).serve(environment()),
  },
  {
    usage: 'core',
    says: 'run core alone',
    example: 'TABERN_DATA=/srv/tabern tabern core',
    kind: 'role',
    run: async () => (await import('../serve.ts')).serveCore(environment()),
  },
  {
    usage: 'gateway',
    says: 'run the gateway alone',
    example: 'tabern gateway --core unix:/srv/tabern/core.sock',
    kind: 'role',
    flags: [{ flags: '--core <address>', says: 'where core is, such as unix:/srv/core.sock' }],
    run: async (_, { core }) => {
      const address = typeof core === 'string' ? core : undefined;
      return (await import('../alone.ts')).serveGateway(environment(), address);
    },
  },
  {
    usage: 'runner',
    says: 'run a runner alone',
    example: 'tabern runner --core unix:/srv/tabern/core.sock',
    kind: 'role',
    flags: [{ flags: '--core <address>', says: 'where core is, such as unix:/srv/core.sock' }],
    run: async (_, { core }) => {
      if (typeof core === 'string') environment()['TABERN_CORE'] = core;
      await (await import('../../runner/main.ts')).runnerMain();
      return 0;
    },
  },
];

/** They run for days, and rest most of the time. */
export const ROLES: readonly Command[] = PARTS.map((command) => ({
  ...command,
  async run(words, given) {
    using _resting = giveBackAtRest();
    return await command.run(words, given);
  },
}));

export const ABOUT: readonly Command[] = [
  {
    usage: 'version',
    says: 'print the version',
    example: 'tabern version',
    kind: 'local',
    run: async () => {
      process.stdout.write(`${version()}\n`);
      return 0;
    },
  },
];
