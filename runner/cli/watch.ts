/**
 * Tells when a project's sources change. Watches its folders, but for dependencies, what is built
 * from the sources, and hidden ones; looks for all folders anew after each change.
 */
import { type FSWatcher, watch } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { CliError } from './config.ts';

/** In milliseconds. Ours: an editor writes a file in several steps, a checkout many files. */
const QUIET_MS = 100;
/** Ours: above any project of sources; what is beyond is not watched. */
const FOLDERS_MAX = 2_000;
const SKIPPED = /^(?:node_modules|dist|build|coverage|tabern_data|\..*)$/;

export type Watch = AsyncDisposable;
export type Watching = {
  /** A folder that is not looked into: what the command itself writes is no source. */
  except?: string;
  /** Once for changes that follow each other closely. */
  onChange(): void;
  /** Some folders cannot be watched any more; the message says why. */
  onLost(message: string): void;
};

/** Throws CliError when the machine lets nobody watch so many folders. */
export async function watchSources(root: string, watching: Watching): Promise<Watch> {
  const { except, onChange, onLost } = watching;
  const watchers: FSWatcher[] = [];
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  let looking: Promise<void> = Promise.resolve();

  function changed(): void {
    clearTimeout(timer);
    if (isOver) return;
    timer = setTimeout(() => {
      looking = looking.then(again);
    }, QUIET_MS);
  }

  /** What changes before it is watched is there when it is told. */
  async function again(): Promise<void> {
    await look().catch((error: unknown) => onLost((error as Error).message));
    if (!isOver) onChange();
  }

  function forget(): void {
    for (const watcher of watchers.splice(0)) watcher.close();
  }

  /** Each anew: a folder may have been removed and another put in its place. */
  async function look(): Promise<void> {
    const fresh: FSWatcher[] = [];
    try {
      await foldersOf(root, (folder) => fresh.push(...watched(folder, changed)), except);
    } finally {
      forget();
      watchers.push(...fresh);
    }
  }

  await look().catch((error: unknown) => {
    forget();
    throw error;
  });
  return {
    async [Symbol.asyncDispose]() {
      isOver = true;
      clearTimeout(timer);
      await looking;
      forget();
    },
  };
}

/** None when the folder is gone. */
function watched(folder: string, changed: () => void): FSWatcher[] {
  try {
    const watcher = watch(folder, (_, name) => {
      if (name === null || !SKIPPED.test(name)) changed();
    });
    return [watcher.on('error', () => watcher.close())]; // it was removed
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return [];
    if (code !== 'ENOSPC' && code !== 'EMFILE') throw error;
    const limits = 'fs.inotify.max_user_watches and fs.inotify.max_user_instances';
    throw new CliError(`too many folders are watched on this machine; raise ${limits}`);
  }
}

/** The root and every folder of sources below it; each is visited before it is looked into. */
export async function foldersOf(
  root: string,
  visit: (folder: string) => void = () => undefined,
  except?: string,
): Promise<string[]> {
  const found = [root];
  for (const folder of found) {
    visit(folder);
    if (found.length >= FOLDERS_MAX) continue;
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    const own = entries.filter((entry) => entry.isDirectory() && !SKIPPED.test(entry.name));
    const paths = own.map(({ name }) => join(folder, name));
    found.push(...paths.filter((path) => path !== except));
  }
  return found;
}
