/** Commands that run the service or one of its roles. */
import { giveBackAtRest } from '../../../proto/common/idle-gc.ts';
import { environment } from '../../config.ts';
import type { Command } from '../command.ts';

const PARTS: readonly Command[] = [
  {
    usage: 'serve',
    description: 'run the whole service on this machine',
    example: 'tabern serve',
    kind: 'role',
    run: async () => (await import('./serve.ts')).serve(environment()),
  },
  {
    usage: 'core',
    description: 'run core only',
    example: 'TABERN_DATA=/srv/tabern tabern core',
    kind: 'role',
    run: async () => (await import('./core.ts')).serveCore(environment()),
  },
  {
    usage: 'gateway',
    description: 'run the gateway only',
    example: 'tabern gateway --core unix:/srv/tabern/core.sock',
    kind: 'role',
    run: async () => (await import('./gateway.ts')).serveGateway(environment()),
  },
  {
    usage: 'runner',
    description: 'run a runner only',
    example: 'tabern runner --core unix:/srv/tabern/core.sock',
    kind: 'role',
    run: async () => {
      await (await import('../../../runner/main.ts')).runnerMain();
      return 0;
    },
  },
];

/** These processes run for days and are idle most of the time. */
export const ROLES: readonly Command[] = PARTS.map((command) => ({
  ...command,
  async run(words, given) {
    using _resting = giveBackAtRest();
    return await command.run(words, given);
  },
}));
