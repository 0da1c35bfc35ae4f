/**
 * Caches node_modules for later builds of the same project with the same lock file. An entry is
 * moved into a build and back by a rename. The runner opens and walks no entry, because its files
 * are a tenant's; only jails read them.
 *
 * Projects share no entries. Only packages that a lock file fixes are cached, never packages from
 * the project's own files or results of scripts.
 */
import { randomUUID } from 'node:crypto';
import { lstat, mkdir, readdir, rename, rmdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../../proto/common/log.ts';
import { ignoring, orMissing } from '../../common/errno.ts';
import { removeTree } from '../../common/remove.ts';

const GIB = 1024 ** 3;
/**
 * Ours: two entries a project, for the lock files of two branches; in all fifty large projects, the
 * least recently used are removed first; one install a tenth of that.
 */
const LIMITS = { ofProjectMax: 2, totalMaxBytes: 10 * GIB, entryMaxBytes: GIB };
/** Ours: as for bundles. */
const UNUSED_MS = 7 * 24 * 3_600_000;
/** Ours: far longer than a move takes. */
const ASIDE_MS = 3_600_000;
/** The name of an entry: its key and its bytes. */
const ENTRY = /^[0-9a-f]{64}-(\d+)$/;

/** The directory is missing, or a file. */
const orNoFile = ignoring('ENOENT', 'ENOTDIR');
/** The directory to remove is not empty, or missing. */
const orLeft = ignoring('ENOENT', 'ENOTEMPTY', 'EEXIST');
/** The entry exists: another build of the project has stored it. */
const orThere = ignoring('ENOTEMPTY', 'EEXIST');

/** The address of an entry. Both members are parts of file names. */
export type Kept = { projectId: string; key: string };

export type Installed = {
  /** Moves node_modules into `root`. Undefined without a usable entry; then root has none. */
  take(kept: Kept, root: string): Promise<Kept | undefined>;
  /** Moves root's node_modules into the cache and enforces the limits. Never rejects. */
  keep(kept: Kept, root: string, bytes: number): Promise<void>;
};

type Entry = { path: string; project: string; bytes: number; usedAt: number };
type Store = { dir: string; aside: () => string; now: () => number; limits: typeof LIMITS };

export async function openInstalled(options: {
  dir: string;
  /** Compared with file times. */
  now?: () => number;
  log: Log;
  limits?: Partial<typeof LIMITS>;
}): Promise<Installed> {
  const { dir, now = Date.now, log } = options;
  const asides = join(dir, 'aside');
  const store: Store = {
    dir,
    now,
    aside: () => join(asides, `${now()}-${randomUUID()}`),
    limits: { ...LIMITS, ...options.limits },
  };
  await mkdir(asides, { recursive: true, mode: 0o700 });
  await removeLeft(asides, now() - ASIDE_MS);
  await sweep(store);
  return {
    async take(kept, root) {
      try {
        return (await take(store, kept, root)) ? kept : undefined;
      } catch (error) {
        log.warn({ err: error, projectId: kept.projectId }, 'using cached packages failed');
        await removeTree(join(root, 'node_modules'));
        return undefined;
      }
    },
    async keep(kept, root, bytes) {
      try {
        await keep(store, kept, { root, bytes });
      } catch (error) {
        log.warn({ err: error, projectId: kept.projectId }, 'caching installed packages failed');
      }
    },
  };
}

/** Of dead runners; younger ones may be those of a runner that is being replaced. */
async function removeLeft(asides: string, before: number): Promise<void> {
  for (const name of await readdir(asides)) {
    const madeAt = Number(name.split('-', 1)[0]);
    if (!(madeAt >= before)) await removeTree(join(asides, name));
  }
}

async function take({ dir }: Store, { projectId, key }: Kept, root: string): Promise<boolean> {
  const home = join(dir, projectId);
  const names = (await readdir(home).catch(orMissing)) ?? [];
  const name = names.find((one) => one.startsWith(`${key}-`));
  if (name === undefined) return false;
  const modules = join(root, 'node_modules');
  // another build may have taken it
  const found = await rename(join(home, name), modules).then(() => true, orMissing);
  if (found !== true) return false;
  if (!(await lstat(modules)).isDirectory()) throw new Error('the entry is no directory');
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
    // no jail can reach it from now on
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

/** Removes entries that are unused for too long, and the least recently used above the limits. */
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
    await rename(path, gone).catch(orMissing); // so that no build takes half of an entry
    await removeTree(gone);
    await rmdir(join(store.dir, project)).catch(orLeft);
  }
}

async function entriesOf(dir: string): Promise<Entry[]> {
  const found: Entry[] = [];
  for (const project of await readdir(dir)) {
    // another build may have removed the project's last entry
    for (const name of (await readdir(join(dir, project)).catch(orNoFile)) ?? []) {
      const [, bytes] = ENTRY.exec(name) ?? [];
      const path = join(dir, project, name);
      const stat = bytes === undefined ? undefined : await lstat(path).catch(orMissing);
      if (stat) found.push({ path, project, bytes: Number(bytes), usedAt: stat.mtimeMs });
    }
  }
  return found;
}
