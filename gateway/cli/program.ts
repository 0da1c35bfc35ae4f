/** The command table as a parser, with its help. */
import { Command as Parser } from 'commander';
import { environment } from '../config.ts';
import { VERSION } from '../process/version.ts';
import { type Command, wordsOf } from './command.ts';
import { flagsOf, rolesOf, settingsOf } from './flags.ts';
import { applySettings, checkSettings } from './settings/apply.ts';
import { warnOfUnknown } from './settings/warn.ts';
import { GROUPS, SECTIONS } from './table.ts';

const EXIT_CODES = `
Exit codes:
  0 done  1 refused or failed  2 wrong call or setting
  69 the port is taken, or core cannot be reached
  70 the storage failed  75 another tabern runs on the data directory
  78 the machine lacks something, such as a sandbox or a Chrome`;

/** Runs the command of these words and returns its exit code. Throws what the command throws. */
export async function runProgram(argv: readonly string[]): Promise<number> {
  const codes: number[] = [];
  await parser((code) => codes.push(code)).parseAsync(argv, { from: 'user' });
  return codes[0] ?? 0;
}

/** `onEnd` receives the exit code of the command. */
export function parser(onEnd: (code: number) => void): Parser {
  const program = new Parser('tabern')
    .description('Remote browser sessions, published functions and signed webhooks.')
    .version(VERSION, '-v, --version')
    .showHelpAfterError('see `--help` of the command for its usage')
    .exitOverride()
    .addHelpText('after', `${exampleOf('tabern serve --port 8080')}\n${EXIT_CODES}`);
  const groups = new Map<string, Parser>();
  for (const { heading, commands } of SECTIONS) {
    for (const command of commands) {
      const parent = groupOf(command, { program, groups, heading });
      const made = added(parent, command, onEnd);
      if (parent === program) made.helpGroup(heading);
    }
  }
  return program;
}

type Groups = { program: Parser; groups: Map<string, Parser>; heading: string };

/** The parser of all words but the last. It shows the example of its first command. */
function groupOf({ usage, example }: Command, { program, groups, heading }: Groups): Parser {
  const words = wordsOf(usage).slice(0, -1);
  const name = words.join(' ');
  if (name === '') return program;
  const known = groups.get(name);
  if (known) return known;
  const { description = '', alias } = GROUPS[name] ?? {};
  const group = program.command(name).description(description).helpGroup(heading);
  group.addHelpText('after', exampleOf(example));
  if (alias !== undefined) group.alias(alias);
  groups.set(name, group);
  return group;
}

function added(parent: Parser, command: Command, onEnd: (code: number) => void): Parser {
  const words = wordsOf(command.usage);
  const own = command.usage.split(' ').slice(words.length - 1);
  const made = parent.command(own.join(' ')).description(command.description);
  for (const flag of flagsOf(command)) made.option(flag.flags, flag.description, flag.default);
  made.addHelpText('after', exampleOf(command.example));
  made.action(async () => {
    const env = environment();
    applySettings(made.opts(), settingsOf(command), env);
    checkSettings(env, rolesOf(command));
    await warnOfUnknown(command, env);
    onEnd(await command.run(made.args, made.opts()));
  });
  return made;
}

function exampleOf(line: string): string {
  return `\nExample:\n  ${line}`;
}
