/** `tabern functions delete <function>`: asks on a terminal; without one, --yes is required. */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { ConfigError } from '../../proto/common/env.ts';
import { plain } from '../../proto/terminal/text.ts';
import { openApi } from './api.ts';
import { type Cli, command, type Options } from './config.ts';
import { functionIdOf } from './offset-pages.ts';

/** Exit code 1 when the user did not confirm. */
export const run = command(deleteFunction);

async function deleteFunction(argument: string, options: Options, cli: Cli): Promise<number> {
  // the question is on stderr, the answer on stdin
  const isTerminal = process.stdin.isTTY && process.stderr.isTTY;
  if (options['yes'] !== true && !isTerminal) {
    throw new ConfigError('there is no terminal to ask on: add --yes to delete');
  }
  const api = openApi(cli);
  const id = await functionIdOf(api, argument);
  const path = `/v1/functions/${id}`;
  if (options['yes'] !== true) {
    const { name } = await api.get(path);
    const what = `function ${plain(name)} with its versions, invocations and logs`;
    if (!(await isConfirmed(`delete ${what}? [y/N] `))) {
      cli.say('nothing was deleted');
      return 1;
    }
  }
  await api.remove(path);
  cli.print(options['json'] === true ? JSON.stringify({ id }) : id);
  return 0;
}

/** The end of the input is a no. */
async function isConfirmed(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const closed = once(lines, 'close').then(() => '');
    const answered = new Promise<string>((resolve) => lines.question(question, resolve));
    return /^y(?:es)?$/i.test((await Promise.race([answered, closed])).trim());
  } finally {
    lines.close();
  }
}
