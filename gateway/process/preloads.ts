/**
 * Node flags that preload modules into this process, to pass them to a child: a tracing SDK creates
 * spans only in the process that loads it. Passed on the command line, because a variable would be
 * inherited by the child's own children.
 */

/** Node's flags that load a module before the program, each with one value. */
const FLAG = /^(--import|--require|-r|--loader|--experimental-loader)(?:=(.*))?$/s;

/** The preload flags of a command line and of NODE_OPTIONS. */
export function preloads(execArgv: readonly string[], nodeOptions = ''): string[] {
  return [...flagsIn(wordsOf(nodeOptions)), ...flagsIn(execArgv)];
}

function flagsIn(words: readonly string[]): string[] {
  return words.flatMap((word, at) => {
    const [, flag, joined] = FLAG.exec(word) ?? [];
    const value = joined ?? words[at + 1];
    return flag === undefined || value === undefined ? [] : [flag, value];
  });
}

/** Splits like Node splits NODE_OPTIONS: at blanks, except in double quotes. */
function wordsOf(text: string): string[] {
  const words = text.match(/(?:[^ "]|"(?:\\.|[^"\\])*")+/gs) ?? [];
  return words.map((word) =>
    word.replaceAll(/"((?:\\.|[^"\\])*)"/gs, (_, quoted: string) =>
      quoted.replaceAll(/\\(.)/gs, '$1'),
    ),
  );
}
