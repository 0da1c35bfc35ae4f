/** Commands for what a project has: contexts, sessions, webhooks. */
import type { Command } from './command.ts';

export const OBJECTS: readonly Command[] = [
  {
    usage: 'context upload <context-id> <directory>',
    says: 'encrypt a user-data directory and make it what the context holds',
    example: 'tabern context upload 0198c0de-0000-7000-8000-000000000000 ./profile',
    kind: 'project',
    run: async ([id = '', directory = ''], given) =>
      (await import('../../runner/cli/context.ts')).upload([id, directory], given),
  },
  {
    usage: 'context download <context-id> <directory>',
    says: 'keep what the context holds, encrypted as it is, as a file in the directory',
    example: 'tabern context download 0198c0de-0000-7000-8000-000000000000 .',
    kind: 'project',
    run: async ([id = '', directory = ''], given) =>
      (await import('../../runner/cli/context.ts')).download([id, directory], given),
  },
];
