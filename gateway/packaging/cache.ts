/**
 * The unpacked files of the executable: one directory per tree, which only its user may write. A
 * tree is unpacked to a temporary directory and renamed, so it is complete or absent, also when
 * starts are concurrent. Files that a cache cleaner has removed are restored.
 */
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Env } from '../../proto/common/env.ts';
import { type Index, unpack } from './archive.ts';
import { sweep, touch } from './sweep.ts';

/** The Node of a tree. The command lines of its child processes begin with this path. */
export const PROGRAM = 'bin/tabern';
/**
 * Node's marker: the byte after it tells whether an executable contains an application. In two
 * parts, so that the loader's own code does not match.
 */
export const FUSE = ['NODE_SEA_FUSE_', 'fce680ab2cc467b6e072b8b5df1996b2'].join('');
const BURNT = `${FUSE}:1`;
const WHOLE = '0'.charCodeAt(0);
const CHUNK_BYTES = 8 * 1024 * 1024;
/** Group and others may not write. */
const OTHERS_WRITE = 0o022;

/** The files cannot be unpacked. The message contains the fix. */
export class CacheError extends Error {
  override readonly name = 'CacheError';
}

export type Carried = {
  index: Index;
  /** Read only when the tree must be unpacked. */
  archive: () => Uint8Array;
  /** The executable. */
  self: string;
};

/** Directory of all trees. `home` of the user throws for one without an entry in passwd. */
export function cacheRoot(env: Env, home: () => string): string {
  const { TABERN_CACHE_DIR, CACHE_DIRECTORY, XDG_CACHE_HOME } = env;
  if (TABERN_CACHE_DIR) return TABERN_CACHE_DIR;
  const ofService = CACHE_DIRECTORY?.split(':')[0]; // systemd's CacheDirectory=
  if (ofService) return ofService;
  return join(XDG_CACHE_HOME || join(homeOf(home), '.cache'), 'tabern/program');
}

function homeOf(home: () => string): string {
  try {
    return home();
  } catch (cause) {
    const why = 'this user has no home directory';
    throw new CacheError(`${why}; set TABERN_CACHE_DIR to a directory of yours`, { cause });
  }
}

/** The directory of the tree below `root`, unpacked if needed. Throws CacheError. */
export function ensureTree(root: string, carried: Carried, nowMs = Date.now()): string {
  try {
    mkdirSync(root, { recursive: true, mode: 0o700 });
    // resolves a symbolic link, as systemd creates them
    return treeIn(realpathSync(root), carried, nowMs);
  } catch (cause) {
    if (cause instanceof CacheError) throw cause;
    const { message } = cause as Error;
    throw new CacheError(
      `cannot unpack into ${root}: ${message}; set TABERN_CACHE_DIR to a directory of yours`,
      { cause },
    );
  }
}

function treeIn(root: string, carried: Carried, nowMs: number): string {
  const { index } = carried;
  checkOwner(root);
  const dir = join(root, `${index.version}-${index.hash}`);
  if (!isWhole(dir, carried)) {
    make(root, dir, carried);
    sweep(root, nowMs);
  }
  touch(dir, nowMs);
  return dir;
}

/** The files are executed: no other user may have written them. */
function checkOwner(root: string): void {
  const { uid, mode } = lstatSync(root);
  const isOwn = uid === process.geteuid?.();
  if (isOwn && (mode & OTHERS_WRITE) === 0) return;
  const why = isOwn ? 'others may write to it' : 'it belongs to another user';
  throw new CacheError(
    `will not run files from ${root}: ${why}; set TABERN_CACHE_DIR to a directory of yours`,
  );
}

/** Compares sizes: a file that an interrupted write or a cleaner left is shorter, or missing. */
function isWhole(dir: string, { index: { entries }, self }: Carried): boolean {
  if (lstatSync(join(dir, PROGRAM), { throwIfNoEntry: false })?.size !== statSync(self).size) {
    return false;
  }
  return entries.every(({ path, size }) => {
    return lstatSync(join(dir, path), { throwIfNoEntry: false })?.size === size;
  });
}

function make(root: string, dir: string, carried: Carried): void {
  const { index, archive, self } = carried;
  const part = mkdtempSync(join(root, '.part-'));
  const umask = process.umask(OTHERS_WRITE); // sandboxes read them under another uid
  try {
    unpack(part, index, archive());
    mkdirSync(join(part, 'bin'), { recursive: true });
    plainNode(self, join(part, PROGRAM));
    chmodSync(part, 0o755);
    put(part, dir, carried);
  } finally {
    process.umask(umask);
    rmSync(part, { recursive: true, force: true });
  }
}

function put(part: string, dir: string, carried: Carried): void {
  try {
    renameSync(part, dir);
  } catch (error) {
    // a concurrent start was faster: both unpacked the same files
    if (isWhole(dir, carried)) return;
    if (!['ENOTEMPTY', 'EEXIST'].includes(String((error as NodeJS.ErrnoException).code))) {
      throw error;
    }
    renameSync(dir, `${part}.old`);
    renameSync(part, dir);
    rmSync(`${part}.old`, { recursive: true, force: true });
  }
}

/**
 * The executable is Node with an application and a marker. Without the marker it is plain Node:
 * `-e`, scripts, threads and flags work, also in a sandbox.
 */
export function plainNode(self: string, to: string): void {
  copyFileSync(self, to, constants.COPYFILE_FICLONE);
  chmodSync(to, 0o755);
  const fd = openSync(to, 'r+');
  try {
    const at = find(fd, BURNT);
    if (at === undefined) throw new Error('this executable is damaged');
    writeSync(fd, Uint8Array.of(WHOLE), 0, 1, at + BURNT.length - 1);
  } finally {
    closeSync(fd);
  }
}

/** The offset of the first occurrence. */
function find(fd: number, text: string): number | undefined {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (let offset = 0; ; offset += CHUNK_BYTES - text.length) {
    const length = readSync(fd, chunk, 0, CHUNK_BYTES, offset);
    const at = chunk.subarray(0, length).indexOf(text);
    if (at >= 0) return offset + at;
    if (length < CHUNK_BYTES) return undefined;
  }
}
