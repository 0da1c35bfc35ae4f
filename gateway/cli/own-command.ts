/** How a user calls this program from a shell: `tabern` where PATH has it, else by its path. */
import { realpathSync } from 'node:fs';
import { basename, delimiter, dirname, isAbsolute, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { shellWord } from '../../proto/common/shell-word.ts';

const NAME = 'tabern';
const LAUNCHER = fileURLToPath(new URL('../tabern.js', import.meta.url));
/** npm adds these folders for the commands that it runs; the user's shell does not have them. */
const OF_NPM = join('node_modules', '.bin');

type Shell = {
  /** The variable PATH. */
  path: string;
  /** The command has a path from this directory; absent: an absolute one. */
  cwd?: string;
};

/** `argv` is that of the process: the executable is called by its path (packaging/loader.ts). */
export function ownCommand({ path, cwd }: Shell, argv = [process.argv0, process.argv[1]]): string {
  const [called = '', script = ''] = argv;
  const isExecutable = basename(called) === NAME && isAbsolute(called);
  const program = isExecutable ? called : LAUNCHER;
  const own = [program, script].map(real).filter((one) => one !== undefined);
  const folders = path.split(delimiter).filter((one) => isAbsolute(one) && !one.endsWith(OF_NPM));
  const inPath = folders.map((one) => real(join(one, NAME))).find((one) => one !== undefined);
  if (inPath !== undefined && own.includes(inPath)) return NAME;
  const at = shellWord(cwd === undefined ? program : withFolder(relative(cwd, program)));
  return isExecutable ? at : `node ${at}`;
}

/** Undefined when there is no such file. */
function real(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined; // PATH may name folders that do not exist
  }
}

function withFolder(path: string): string {
  return dirname(path) === '.' ? `.${sep}${path}` : path;
}
