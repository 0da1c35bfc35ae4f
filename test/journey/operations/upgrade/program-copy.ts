/** Copies of the program, as a newer release, or one with a defect. */
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tempDirectory } from '../../../support/temp.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const SOURCES = ['proto', 'core', 'gateway', 'runner'];
const SHARED = ['node_modules', 'dist'];

export type ProgramCopy = {
  path: string;
  /** The file to run with node. */
  bin: string;
  /** Sets the version of package.json. */
  release(version: string): void;
  /** Replaces the first occurrence in a source file; throws without one. Returns the undo. */
  edit(file: string, change: { from: string; to: string }): () => void;
} & AsyncDisposable;

export function copyProgram(): ProgramCopy {
  const dir = tempDirectory('tabern-program-');
  for (const name of SOURCES) cpSync(join(ROOT, name), join(dir.path, name), { recursive: true });
  for (const name of SHARED) symlinkSync(join(ROOT, name), join(dir.path, name));
  mkdirSync(join(dir.path, '.cache'));
  cpSync(join(ROOT, 'package.json'), join(dir.path, 'package.json'));
  const edit: ProgramCopy['edit'] = (file, { from, to }) => {
    const path = join(dir.path, file);
    const text = readFileSync(path, 'utf8');
    if (!text.includes(from)) throw new Error(`${file} has no ${from}`);
    writeFileSync(path, text.replace(from, to));
    return () => writeFileSync(path, text);
  };
  return {
    path: dir.path,
    bin: join(dir.path, 'gateway/tabern.js'),
    edit,
    release(version) {
      const path = join(dir.path, 'package.json');
      const contents = JSON.parse(readFileSync(path, 'utf8')) as object;
      writeFileSync(path, JSON.stringify({ ...contents, version }));
    },
    [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
  };
}
