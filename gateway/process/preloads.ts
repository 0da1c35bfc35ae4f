/**
 * What the operator preloaded into this process, so that a child can have it too: an SDK that makes
 * spans makes them in one process only. As words of the command line, since a variable would go on
 * to whatever the child starts.
 */

/** Of Node's flags those that load a module before the program, each with one value. */
const FLAG = /^(--import|--require|-r|--loader|--experimental-loader)(?:=(.*))?$/s;

/** The flags that preload, from a command line and from NODE_OPTIONS. */
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

/** As Node splits NODE_OPTIONS: at blanks, but for what stands in double quotes. */
function wordsOf(text: string): string[] {
  const words = text.match(/(?:[^ "]|"(?:\\.|[^"\\])*")+/gs) ?? [];
  return words.map((word) =>
    word.replaceAll(/"((?:\\.|[^"\\])*)"/gs, (_, quoted: string) =>
      quoted.replaceAll(/\\(.)/gs, '$1'),
    ),
  );
}
