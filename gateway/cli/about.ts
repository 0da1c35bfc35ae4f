/** Commands about the program itself. */

import { readFileSync } from 'node:fs';
import { columns } from '../../proto/common/text-table.ts';
import { environment } from '../config.ts';
import type { Command } from './command.ts';
import { completionScript } from './completion.ts';
import { shownSettings } from './settings/apply.ts';

/** `every`: the whole table, this part included, once it is there. */
export function about(
  every: () => readonly Command[],
  flagsOf: (command: Command) => readonly { flags: string }[],
): readonly Command[] {
  return [
    {
      usage: 'config',
      says: 'show every setting, its value, and where that came from; secrets are masked',
      example: 'tabern config --config tabern.json',
      kind: 'settings',
      flags: [{ flags: '--json', says: 'print JSON alone' }],
      run: async (_, { json }) => {
        const shown = shownSettings(environment());
        const rows = shown.map(({ name, value, from }) => [name, value, from]);
        const text = columns(['SETTING', 'VALUE', 'FROM'], rows);
        process.stdout.write(`${json === true ? JSON.stringify(shown) : text}\n`);
        return 0;
      },
    },
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
    {
      usage: 'completion <shell>',
      says: 'print a script that completes commands in bash, zsh or fish',
      example: 'eval "$(tabern completion bash)"',
      kind: 'local',
      run: async ([shell = '']) => {
        process.stdout.write(completionScript(shell, every(), flagsOf));
        return 0;
      },
    },
  ];
}

const PACKAGE = new URL('../../package.json', import.meta.url);

export function version(): string {
  const { version } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string };
  return version;
}
