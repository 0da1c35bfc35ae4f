/**
 * A reader of the guide: runs one block after another as in one shell. The directory, aliases and
 * exported variables of a block are those of the next one.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TempDirectory, tempDirectory } from '../temp.ts';
import { ROOT } from './blocks.ts';

/** For an installation from a registry, on a busy machine. */
const LIMIT_MS = 300_000;

export type Reader = AsyncDisposable & {
  /** Runs the commands; returns their output, and throws with it when one fails. */
  run(commands: string): Promise<string>;
  /** Writes a file into the current directory. */
  write(name: string, text: string | Buffer): Promise<void>;
  /** Reads a file of the current directory. */
  read(name: string): Promise<string>;
};

/** The reader begins in a clone of the repository. `env`: more variables. */
export function openReader(env: Record<string, string>): Reader {
  const dir: TempDirectory = tempDirectory();
  const at = (name: string): string => join(dir.path, name);
  // a directory, not a link to the repository: commands of the guide create directories beside it
  mkdirSync(at('tabern/dist'), { recursive: true });
  symlinkSync(join(ROOT, 'gateway'), at('tabern/gateway'));
  symlinkSync(join(ROOT, 'dist/functions'), at('tabern/dist/functions'));
  writeFileSync(at('state'), `cd '${at('tabern')}'\n`);
  writeFileSync(at('cwd'), at('tabern'));
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('TABERN_'));
  const head = [
    'set -euo pipefail',
    'shopt -s expand_aliases',
    `source '${at('state')}'`,
    `save() { alias -p; export -p; echo "cd '$PWD'"; }`,
    `trap 'save >${at('state')}; pwd >${at('cwd')}' EXIT`,
  ].join('\n');
  const cwd = async (): Promise<string> => (await readFile(at('cwd'), 'utf8')).trim();
  return {
    async run(commands) {
      writeFileSync(at('block'), `${head}\n${commands}\n`);
      const child = spawn('bash', [at('block')], {
        env: { ...Object.fromEntries(inherited), ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
        timeout: LIMIT_MS,
      });
      let output = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (text: string) => {
          output += text;
        });
      }
      const [code] = (await once(child, 'close')) as [number | null];
      if (code !== 0) throw new Error(`exit ${code}:\n${commands}\n${output}`);
      return output;
    },
    async write(name, text) {
      writeFileSync(join(await cwd(), name), text);
    },
    async read(name) {
      return await readFile(join(await cwd(), name), 'utf8');
    },
    [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
  };
}
