/**
 * What installs have put into node_modules, kept for the next build of the same project with the
 * same lock file. An entry is moved into a build and back again, whole, by a rename: nothing of it
 * is opened, walked or changed here, since whatever lies in it is a tenant's. Only jails read it.
 *
 * Of one project alone: what a project brought here, no other can meet. Only what a lock file fixes
 * is kept, never a package out of the project's own files, and never what a script made.
 */
import { randomUUID } from 'node:crypto';
import { lstat, mkdir, readdir, rename, rmdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../../proto/common/log.ts';
import { removeTree } from '../../common/remove.ts';

/** Ours: with the lock files of two branches, a project has both at hand. */
const OF_PROJECT_MAX = 2;
/** In bytes. Ours: fifty large projects; what was used longest ago goes first. */
const TOTAL_MAX_BYTES = 10 * 1024 ** 3;
/** In bytes, of one install. Ours: a tenth of the whole. */
const ENTRY_MAX_BYTES = 1024 ** 3;
/** Ours: as for bundles. */
const UNUSED_MS = 7 * 24 * 3_600_000;
/** Part of the name of an entry: it need not be measured again. */
const ENTRY = /^[0-9a-f]{64}-(\d+)$/;
type Limits = { ofProjectMax: number; totalMaxBytes: number; entryMaxBytes: number };
const LIMITS: Limits = {
  ofProjectMax: OF_PROJECT_MAX,
  totalMaxBytes: TOTAL_MAX_BYTES,
  entryMaxBytes: ENTRY_MAX_BYTES,
};

/** Whose, and named by what decides it. Both are names of files. */
export type Kept = { projectId: string; key: string };

export type Installed = {
  /**
   * Moves node_modules into root. Undefined when there is none, or it cannot; then root has none
   * either.
   */
  take(kept: Kept, root: string): Promise<Kept | undefined>;
  /**
   * Moves root's node_modules, of so many bytes, back or here for the first time, and removes what
   * is beyond the limits. Never rejects.
   */
  keep(kept: Kept, root: string, bytes: number): Promise<void>;
};

type Entry = { path: string; project: string; bytes: number; usedAt: number };
type Store = { dir: string; aside: () => string; now: () => number; limits: Limits };

export async function openInstalled(options: {
  dir: string;
  /** Compared with times of files. */
  now?: () => number;
  log: Log;
  limits?: Partial<Limits>;
}): Promise<Installed> {
  const { dir, now = Date.now, log } = options;
  const asides = join(dir, 'aside');
  const store: Store = {
    dir,
    now,
    aside: () => join(asides, randomUUID()),
    limits: { ...LIMITS, ...options.limits },
  };
  await removeTree(asides); // of a runner that died
  await mkdir(asides, { recursive: true, mode: 0o700 });
  await sweep(store);
  return {
    async take(kept, root) {
      try {
        return (await take(store, kept, root)) ? kept : undefined;
      } catch (error) {
        log.warn({ err: error, projectId: kept.projectId }, 'installed packages cannot be used');
        await removeTree(join(root, 'node_modules'));
        return undefined;
      }
    },
    async keep(kept, root, bytes) {
      try {
        await keep(store, kept, { root, bytes });
      } catch (error) {
        log.warn({ err: error, projectId: kept.projectId }, 'installed packages cannot be kept');
      }
    },
  };
}

async function take({ dir }: Store, { projectId, key }: Kept, root: string): Promise<boolean> {
  const home = join(dir, projectId);
  const names = (await readdir(home).catch(orMissing)) ?? [];
  const name = names.find((one) => one.startsWith(`${key}-`));
  if (name === undefined) return false;
  const modules = join(root, 'node_modules');
  // another build may have been first
  const found = await rename(join(home, name), modules).then(() => true, orMissing);
  if (found !== true) return false;
  if (!(await lstat(modules)).isDirectory()) throw new Error('what was kept is no directory');
  return true;
}

async function keep(
  store: Store,
  { projectId, key }: Kept,
  { root, bytes }: { root: string; bytes: number },
): Promise<void> {
  if (bytes > store.limits.entryMaxBytes) return;
  const made = store.aside();
  try {
    await rename(join(root, 'node_modules'), made);
    // from here on nobody else can reach it
    if (!(await lstat(made)).isDirectory()) throw new Error('node_modules is no directory');
    const seconds = store.now() / 1_000;
    await utimes(made, seconds, seconds);
    const home = join(store.dir, projectId);
    await mkdir(home, { recursive: true, mode: 0o700 });
    await rename(made, join(home, `${key}-${bytes}`)).catch(orThere);
    await sweep(store);
  } finally {
    await removeTree(made);
  }
}

/** Removes what was not used for long, and from the one used longest ago what is too much. */
async function sweep(store: Store): Promise<void> {
  const { ofProjectMax, totalMaxBytes } = store.limits;
  const newestFirst = (await entriesOf(store.dir)).sort((one, other) => other.usedAt - one.usedAt);
  const places = new Map<string, number>();
  let bytes = 0;
  for (const { path, project, bytes: own, usedAt } of newestFirst) {
    const place = (places.get(project) ?? 0) + 1;
    places.set(project, place);
    bytes += own;
    const isTooMuch = place > ofProjectMax || bytes > totalMaxBytes;
    if (!isTooMuch && usedAt >= store.now() - UNUSED_MS) continue;
    const gone = store.aside();
    await rename(path, gone).catch(orMissing); // who begins to use it now finds nothing, not half
    await removeTree(gone);
    await rmdir(join(store.dir, project)).catch(orLeft);
  }
}

async function entriesOf(dir: string): Promise<Entry[]> {
  const found: Entry[] = [];
  for (const project of await readdir(dir)) {
    // another build may have removed the last of a project
    for (const name of (await readdir(join(dir, project)).catch(orNoFile)) ?? []) {
      const [, bytes] = ENTRY.exec(name) ?? [];
      const path = join(dir, project, name);
      const stat = bytes === undefined ? undefined : await lstat(path).catch(orMissing);
      if (stat) found.push({ path, project, bytes: Number(bytes), usedAt: stat.mtimeMs });
    }
  }
  return found;
}

function orMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

/** Nothing is there, or a file for a directory, or the other way round. */
function orNoFile(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOTDIR' && error.code !== 'EISDIR') orMissing(error);
}

/** Of a directory to remove: it holds more, or is gone. */
function orLeft(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') orThere(error);
}

/** Something is there already: another build of the project was first. */
function orThere(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
}
