/** The command table as a parser, with its help. */
import { Command as Parser } from 'commander';
import type { Command, Flag } from './command.ts';
import { GROUPS, SECTIONS } from './table.ts';
import { version } from './version.ts';

const EXIT_CODES = `
Exit codes:
  0 done  1 refused or failed  2 wrong call or setting  69 the port is taken
  70 the storage failed  75 another tabern runs on the data directory
  78 the machine lacks something, such as a sandbox or a Chrome`;

/** Which every command that calls the service has. */
const OF_PROJECT: readonly Flag[] = [
  {
    flags: '--base-url <url>',
    says: 'where tabern is; TABERN_BASE_URL, or http://127.0.0.1:4747',
  },
  { flags: '--api-key <key>', says: 'your API key; TABERN_API_KEY when absent' },
  { flags: '--json', says: 'print JSON alone' },
];

/** Which every command that works on a data directory has. */
const OF_OPERATOR: readonly Flag[] = [
  { flags: '--data <directory>', says: 'the data directory; TABERN_DATA, or ./tabern_data' },
  { flags: '--core <address>', says: "core's address; TABERN_CORE, or the socket in --data" },
  { flags: '--json', says: 'print JSON alone' },
];

/** Runs the command that the words name; gives its exit code. Throws what the command throws. */
export async function runProgram(argv: readonly string[]): Promise<number> {
  let code = 0;
  const program = parser((ended) => {
    code = ended;
  });
  await program.parseAsync(argv, { from: 'user' });
  return code;
}

/** `over` is told the exit code of the command that ran. */
export function parser(over: (code: number) => void): Parser {
  const program = new Parser('tabern')
    .description('Remote browser sessions, published functions and signed webhooks.')
    .version(version(), '-v, --version')
    .showHelpAfterError()
    .exitOverride()
    .addHelpText('after', EXIT_CODES);
  const groups = new Map<string, Parser>();
  for (const { heading, commands } of SECTIONS) {
    for (const command of commands) {
      const parent = groupOf(command, { program, groups, heading });
      const made = added(parent, command, over);
      if (parent === program) made.helpGroup(heading);
    }
  }
  return program;
}

type Groups = { program: Parser; groups: Map<string, Parser>; heading: string };

/** The parser of all words but the last. */
function groupOf({ usage }: Command, { program, groups, heading }: Groups): Parser {
  const words = wordsOf(usage).slice(0, -1);
  const name = words.join(' ');
  if (name === '') return program;
  const known = groups.get(name);
  if (known) return known;
  const group = program
    .command(name)
    .description(GROUPS[name] ?? '')
    .helpGroup(heading);
  groups.set(name, group);
  return group;
}

function added(parent: Parser, command: Command, over: (code: number) => void): Parser {
  const words = wordsOf(command.usage);
  const own = command.usage.split(' ').slice(words.length - 1);
  const made = parent.command(own.join(' ')).description(command.says);
  for (const flag of flagsOf(command)) made.option(flag.flags, flag.says, flag.default);
  made.addHelpText('after', `\nExample:\n  ${command.example}`);
  made.action(async () => {
    over(await command.run(made.args, made.opts()));
  });
  return made;
}

/** Its own, then those of its kind. */
export function flagsOf({ flags = [], kind }: Command): readonly Flag[] {
  if (kind === 'project') return [...flags, ...OF_PROJECT];
  return kind === 'operator' ? [...flags, ...OF_OPERATOR] : flags;
}

/** The words before the arguments. */
export function wordsOf(usage: string): string[] {
  return usage.split(' ').filter((word) => !/^[<[]/.test(word));
}
