/**
 * What installs have put into node_modules, kept for the next build of the same project with the
 * same lock file. An entry is whole or it is not there: it is made aside and renamed. Its files are
 * hard links of a build's, so keeping and using one moves no bytes; nothing ever writes to them.
 *
 * Of one project alone: what a project brought here, no other can meet. Only what a lock file fixes
 * is kept, never a package out of the project's own files, and never what a script made.
 */
import { createHash, randomUUID } from 'node:crypto';
import {
  copyFile,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  rmdir,
  symlink,
  utimes,
} from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../proto/log.ts';

/** Ours: with the lock files of two branches, a project has both at hand. */
const OF_PROJECT_MAX = 2;
/** In bytes. Ours: fifty large projects; what was used longest ago goes first. */
const TOTAL_MAX_BYTES = 10 * 1024 ** 3;
/** In bytes, of one install. Ours: a tenth of the whole. */
const ENTRY_MAX_BYTES = 1024 ** 3;
/** Ours: as for bundles. */
const UNUSED_MS = 7 * 24 * 3_600_000;
/** Changes when what an entry means does. */
const FORMAT = 1;
/** Part of the name of an entry: it need not be measured again. */
const ENTRY = /^[0-9a-f]{64}-(\d+)$/;
const LOCKS = ['package-lock.json', 'npm-shrinkwrap.json', 'pnpm-lock.yaml'];
/** In package.json or a lock file: a package out of the project's files, which no key covers. */
const OWN_FILES = /\b(?:file|link|portal|workspace):|"link":\s*true|"workspaces":/;

type Limits = { ofProjectMax: number; totalMaxBytes: number; entryMaxBytes: number };
const LIMITS: Limits = {
  ofProjectMax: OF_PROJECT_MAX,
  totalMaxBytes: TOTAL_MAX_BYTES,
  entryMaxBytes: ENTRY_MAX_BYTES,
};

export type Installed = {
  /** Names what an install of this project gives; undefined when the lock file does not fix it. */
  keyOf(root: string, installer: readonly string[]): Promise<string | undefined>;
  /** Puts node_modules into root. False when it has none, or cannot; then root has none either. */
  use(projectId: string, key: string, root: string): Promise<boolean>;
  /** Keeps root's node_modules, and removes what is beyond the limits. Never rejects. */
  keep(projectId: string, key: string, root: string): Promise<void>;
};

type Entry = { path: string; project: string; bytes: number; usedAt: number };
type Store = { dir: string; aside: () => string; now: () => number; limits: Limits };

export async function openInstalled(options: {
  dir: string;
  now: () => number;
  log: Log;
  limits?: Partial<Limits>;
}): Promise<Installed> {
  const { dir, now, log } = options;
  const asides = join(dir, 'aside');
  const store: Store = {
    dir,
    now,
    aside: () => join(asides, randomUUID()),
    limits: { ...LIMITS, ...options.limits },
  };
  await rm(asides, { recursive: true, force: true }); // of a runner that died
  await mkdir(asides, { recursive: true, mode: 0o700 });
  await sweep(store);
  return {
    keyOf,
    async use(projectId, key, root) {
      try {
        return await use(store, { home: join(dir, projectId), key, root });
      } catch (error) {
        log.warn({ err: error, projectId }, 'installed packages cannot be used again');
        await rm(join(root, 'node_modules'), { recursive: true, force: true });
        return false;
      }
    },
    async keep(projectId, key, root) {
      try {
        await keep(store, { home: join(dir, projectId), key, root });
      } catch (error) {
        log.warn({ err: error, projectId }, 'installed packages cannot be kept');
      }
    },
  };
}

type Wanted = { home: string; key: string; root: string };

async function use({ now }: Store, { home, key, root }: Wanted): Promise<boolean> {
  const names = (await readdir(home).catch(orMissing)) ?? [];
  const name = names.find((one) => one.startsWith(`${key}-`));
  if (name === undefined) return false;
  await linkTree(join(home, name), join(root, 'node_modules'));
  const seconds = now() / 1_000;
  await utimes(join(home, name), seconds, seconds).catch(orMissing);
  return true;
}

async function keep(store: Store, { home, key, root }: Wanted): Promise<void> {
  const made = store.aside();
  try {
    const bytes = await linkTree(join(root, 'node_modules'), made);
    if (bytes > store.limits.entryMaxBytes) return;
    const seconds = store.now() / 1_000;
    await utimes(made, seconds, seconds);
    await mkdir(home, { recursive: true, mode: 0o700 });
    await rename(made, join(home, `${key}-${bytes}`)).catch(orThere);
    await sweep(store);
  } finally {
    await rm(made, { recursive: true, force: true });
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
    await rm(gone, { recursive: true, force: true, maxRetries: 3 });
    await rmdir(join(store.dir, project)).catch(orLeft);
  }
}

/** Of all that decides what is installed: package.json, the lock, who installs, and where. */
async function keyOf(root: string, installer: readonly string[]): Promise<string | undefined> {
  const files = ['package.json', ...LOCKS].map((name) =>
    readFile(join(root, name), 'utf8').catch(orNoFile),
  );
  const [project, ...locks] = await Promise.all(files);
  const texts = [project, ...locks];
  if (project === undefined || locks.every((lock) => lock === undefined)) return undefined;
  if (texts.some((text) => text !== undefined && OWN_FILES.test(text))) return undefined;
  const place = [process.platform, process.arch, process.version];
  const what = JSON.stringify([FORMAT, place, installer, texts.map((text) => text ?? null)]);
  return createHash('sha256').update(what).digest('hex');
}

/** Makes the tree at `to`, of hard links. Gives its size in bytes. */
async function linkTree(from: string, to: string): Promise<number> {
  await mkdir(to);
  const entries = await readdir(from, { withFileTypes: true });
  const sizes = entries.map(async (entry) => {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) return linkTree(source, target);
    if (entry.isSymbolicLink()) {
      await symlink(await readlink(source), target);
      return 0;
    }
    await linkFile(source, target);
    return (await lstat(target)).size;
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

/** A copy where a link is refused. */
async function linkFile(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EXDEV' && code !== 'EPERM' && code !== 'EMLINK') throw error;
    await copyFile(from, to);
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
