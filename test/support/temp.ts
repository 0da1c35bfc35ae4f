/** Temporary directories that are removed at the end of their scope. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export type TempDirectory = { path: string } & AsyncDisposable;

/** `await using dir = tempDirectory()`: an empty 0700 directory, removed with its content. */
export function tempDirectory(prefix = 'tabern-test-', parent = tmpdir()): TempDirectory {
  const path = mkdtempSync(join(parent, prefix));
  return {
    path,
    async [Symbol.asyncDispose]() {
      rmSync(path, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

/** Writes the files, keyed by path inside `root`, and creates their folders. */
export function writeTree(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}
