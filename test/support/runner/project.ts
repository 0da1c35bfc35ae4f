/** A temporary directory with files in it: a user's project, for tests of builds. */
import { type TempDirectory, tempDirectory, writeTree } from '../temp.ts';

/** `await using dir = directory({ 'index.ts': '...' })` */
export function directory(files: Readonly<Record<string, string>> = {}): TempDirectory {
  const made = tempDirectory();
  writeTree(made.path, files);
  return made;
}
