/**
 * Tells when a project's sources change. Watches its folders, but for dependencies, what is built
 * from the sources, and hidden ones; looks for new folders after each change.
 */
import { type FSWatcher, watch } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** In milliseconds. Ours: an editor writes a file in several steps, a checkout many files. */
const QUIET_MS = 100;
/** Ours: above any project of sources; what is beyond is not watched. */
const FOLDERS_MAX = 2_000;
const SKIPPED = /^(?:node_modules|dist|build|coverage|tabern_data|\..*)$/;

export type Watch = AsyncDisposable;

/** Calls `onChange` once for changes that follow each other closely. */
export async function watchSources(root: string, onChange: () => void): Promise<Watch> {
  const watchers = new Map<string, FSWatcher>();
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  let looking: Promise<void> = Promise.resolve();

  function changed(): void {
    clearTimeout(timer);
    if (isOver) return;
    timer = setTimeout(() => {
      looking = looking.then(look);
      onChange();
    }, QUIET_MS);
  }

  function forget(folder: string): void {
    watchers.get(folder)?.close();
    watchers.delete(folder);
  }

  async function look(): Promise<void> {
    const folders = await foldersOf(root);
    if (isOver) return;
    for (const folder of watchers.keys()) if (!folders.includes(folder)) forget(folder);
    for (const folder of folders) {
      if (watchers.has(folder)) continue;
      const watcher = watch(folder, (_, name) => {
        if (name === null || !SKIPPED.test(name)) changed();
      });
      watcher.on('error', () => forget(folder)); // it was removed
      watchers.set(folder, watcher);
    }
  }

  await look();
  return {
    async [Symbol.asyncDispose]() {
      isOver = true;
      clearTimeout(timer);
      await looking;
      for (const folder of watchers.keys()) forget(folder);
    },
  };
}

/** The root and every folder of sources below it. */
export async function foldersOf(root: string): Promise<string[]> {
  const found = [root];
  for (const folder of found) {
    if (found.length >= FOLDERS_MAX) break;
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    const own = entries.filter((entry) => entry.isDirectory() && !SKIPPED.test(entry.name));
    found.push(...own.map(({ name }) => join(folder, name)));
  }
  return found;
}
