/** Commands about the program itself. */

import { columns } from '../../proto/common/text-table.ts';
import { environment } from '../config.ts';
import { VERSION } from '../process/version.ts';
import { type Command, flag } from './command.ts';
import { completionScript } from './completion.ts';
import { shownSettings } from './settings/apply.ts';

/** `every` returns the whole table, including this section, after it is built. */
export function about(every: () => readonly Command[]): readonly Command[] {
  return [
    {
      usage: 'config',
      description: 'show every setting with its value and source; secrets are masked',
      example: 'tabern config --config tabern.json',
      kind: 'settings',
      flags: [flag('--json', 'print JSON alone')],
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
      description: 'print the version',
      example: 'tabern version',
      kind: 'local',
      run: async () => {
        process.stdout.write(`${VERSION}\n`);
        return 0;
      },
    },
    {
      usage: 'completion <shell>',
      description: 'print a shell completion script for bash, zsh or fish',
      example: 'eval "$(tabern completion bash)"',
      kind: 'local',
      run: async ([shell = '']) => {
        process.stdout.write(completionScript(shell, every()));
        return 0;
      },
    },
  ];
}
