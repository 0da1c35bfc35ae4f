/**
 * `tabern completion SHELL`: prints a script that completes words and flags of the command table.
 */
import { ConfigError } from '../../proto/common/env.ts';
import { type Command, wordsOf } from './command.ts';
import { flagsOf } from './flags.ts';

/** Words that may follow each prefix of a command line: `keys` -> create, list, revoke. */
type Tree = ReadonlyMap<string, readonly string[]>;

const SHELLS = { bash, zsh, fish } as const;

/** Throws ConfigError for an unsupported shell. */
export function completionScript(shell: string, commands: readonly Command[]): string {
  const write = Object.hasOwn(SHELLS, shell) ? SHELLS[shell as keyof typeof SHELLS] : undefined;
  if (!write) throw new ConfigError(`the shell must be one of ${Object.keys(SHELLS).join(', ')}`);
  return write(treeOf(commands));
}

function treeOf(commands: readonly Command[]): Tree {
  const tree = new Map<string, string[]>();
  const add = (start: string, word: string) => {
    const words = tree.get(start) ?? [];
    if (!words.includes(word)) tree.set(start, [...words, word]);
  };
  for (const command of commands) {
    const words = wordsOf(command.usage);
    for (const [at, word] of words.entries()) add(words.slice(0, at).join(' '), word);
    for (const { flags } of flagsOf(command)) {
      for (const flag of flags.match(/--[a-z-]+/g) ?? []) add(words.join(' '), flag);
    }
    add(words.join(' '), '--help');
  }
  return tree;
}

function cases(tree: Tree): string {
  return [...tree]
    .map(([start, words]) => `    '${start}') offers='${words.join(' ')}';;`)
    .join('\n');
}

/** Finds the longest known prefix of the command line and offers its words. */
const FIND = `  local start='' word offers
  for word in "\${typed[@]}"; do
    case "$word" in -*) continue;; esac
    start="\${start:+$start }$word"
  done
  while :; do
    offers=''
    case "$start" in
CASES
    esac
    [ -n "$offers" ] && break
    [ -z "$start" ] && return
    case "$start" in *' '*) start="\${start% *}";; *) start='';; esac
  done`;

function bash(tree: Tree): string {
  return `# eval "$(tabern completion bash)"
_tabern() {
  local typed=("\${COMP_WORDS[@]:1:COMP_CWORD-1}")
${FIND.replace('CASES', cases(tree))}
  COMPREPLY=($(compgen -W "$offers" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _tabern tabern
`;
}

/** zsh runs the bash script. */
function zsh(tree: Tree): string {
  const load = 'autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit';
  return `# eval "$(tabern completion zsh)"\n${load}\n${bash(tree).replace(/^.*\n/, '')}`;
}

function fish(tree: Tree): string {
  const lines = [...tree].map(([start, words]) => {
    const seen = start === '' ? '__fish_use_subcommand' : `__tabern_after ${start}`;
    return `complete -c tabern -n '${seen}' -a '${words.join(' ')}'`;
  });
  return `# tabern completion fish | source
function __tabern_after
  set -l typed (commandline -opc | string match -v -- '-*')
  test (count $typed) -gt (count $argv)
  and test "$typed[2..(math (count $argv) + 1)]" = "$argv"
end
${lines.join('\n')}
`;
}
