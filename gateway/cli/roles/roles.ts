/** Commands that run the service, or a part of it. */
import { giveBackAtRest } from '../../../proto/common/idle-gc.ts';
import { environment } from '../../config.ts';
import type { Command } from '../command.ts';

const PARTS: readonly Command[] = [
  {
    usage: 'serve',
    says: 'run everything here',
    example: 'tabern serve',
    kind: 'role',
    run: async () => (await import('./serve.ts')).serve(environment()),
  },
  {
    usage: 'core',
    says: 'run core alone',
    example: 'TABERN_DATA=/srv/tabern tabern core',
    kind: 'role',
    run: async () => (await import('./serve.ts')).serveCore(environment()),
  },
  {
    usage: 'gateway',
    says: 'run the gateway alone',
    example: 'tabern gateway --core unix:/srv/tabern/core.sock',
    kind: 'role',
    run: async () => (await import('./gateway.ts')).serveGateway(environment()),
  },
  {
    usage: 'runner',
    says: 'run a runner alone',
    example: 'tabern runner --core unix:/srv/tabern/core.sock',
    kind: 'role',
    run: async () => {
      await (await import('../../../runner/main.ts')).runnerMain();
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
