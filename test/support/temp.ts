/** Temporary directories that end with their scope. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export type TempDirectory = { path: string } & AsyncDisposable;

/** `await using dir = tempDirectory()`: an empty 0700 directory, removed with all that is in it. */
export function tempDirectory(prefix = 'tabern-test-'): TempDirectory {
  const path = mkdtempSync(join(tmpdir(), prefix));
  return {
    path,
    async [Symbol.asyncDispose]() {
      rmSync(path, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

/** Writes the files, keyed by path inside `root`, making folders as needed. */
export function writeTree(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}
