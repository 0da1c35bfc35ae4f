/**
 * Small files and directories that are complete or absent after a power loss: bytes are written to
 * a temporary file and synced, the file is renamed, and its directory is synced. Synchronous,
 * because a start waits for them anyway.
 */
import { randomUUID } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DataError } from './env.ts';

const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;
/** In characters of a token: a shorter one is truncated. */
export const TOKEN_MIN = 32;

/** Creates the directory and its parents; syncs the entry of each new one in its parent. */
export function makeDirectory(path: string, mode = DIRECTORY_MODE): void {
  const first = mkdirSync(path, { recursive: true, mode });
  if (first === undefined) return;
  const top = resolve(first);
  for (let made = resolve(path); ; made = dirname(made)) {
    syncDirectory(dirname(made));
    if (made === top) return;
  }
}

/** Throws EEXIST when the file exists. */
export function createFile(path: string, text: string): void {
  put(path, text, (aside) => linkSync(aside, path));
}

export function replaceFile(path: string, text: string): void {
  put(path, text, (aside) => renameSync(aside, path));
}

function put(path: string, text: string, name: (aside: string) => void): void {
  makeDirectory(dirname(path));
  // of this call alone: two processes may write the same file
  const aside = `${path}.${randomUUID()}.new`;
  try {
    writeFileSync(aside, text, { flag: 'wx', mode: FILE_MODE, flush: true });
    name(aside);
  } finally {
    rmSync(aside, { force: true });
  }
  syncDirectory(dirname(path));
}

/** Syncs the names in the directory. A directory that this user may not read cannot be synced. */
export function syncDirectory(path: string): void {
  let opened: number;
  try {
    opened = openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES') return;
    throw error;
  }
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}

/**
 * Reads the token in that file. Throws DataError when it is truncated, the system's error
 * otherwise.
 */
export function readToken(path: string): string {
  const token = readFileSync(path, 'utf8').trim();
  if (token.length >= TOKEN_MIN && /^[\x21-\x7e]+$/.test(token)) return token;
  throw new DataError(`${path} is damaged: delete it and start core again`);
}

/** Codes for a path of a file system. */
const DENIED = new Set(['EACCES', 'EPERM', 'EROFS']);
/** Codes of SQLite, which do not name the path; an extended code has one of them as its prefix. */
const SQLITE_DENIED = /^SQLITE_(?:CANTOPEN|READONLY)(?:_|$)/;
/** The directory and the files in it that core opens for writing. */
const WRITTEN = ['.', 'lock.db', 'tabern.db', 'tabern.db-wal', 'tabern.db-shm'];

type Denied = { code: string; path: string };

/**
 * The message for an operator when this user lacks a permission in the data directory, with the
 * fix; undefined for every other error.
 */
export function noAccess(error: unknown, dataDir: string): string | undefined {
  const { code = '', path } = error as NodeJS.ErrnoException;
  if (SQLITE_DENIED.test(code)) {
    const denied = notWritable(dataDir);
    return denied && messageOf(denied, dataDir);
  }
  if (!DENIED.has(code) || path === undefined || !isWithin(path, dataDir)) return undefined;
  return messageOf({ code, path }, dataDir);
}

function isWithin(path: string, dataDir: string): boolean {
  const directory = resolve(dataDir);
  return resolve(path) === directory || resolve(path).startsWith(`${directory}/`);
}

/** The first path that this user may not write; undefined when the user may write all. */
function notWritable(dataDir: string): Denied | undefined {
  for (const name of WRITTEN) {
    const path = join(dataDir, name);
    try {
      accessSync(path, name === '.' ? constants.W_OK | constants.X_OK : constants.W_OK);
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      if (DENIED.has(code)) return { code, path };
    }
  }
  return undefined;
}

function messageOf({ code, path }: Denied, dataDir: string): string {
  const other = 'set --data to another directory';
  if (code === 'EROFS') {
    const why = 'is on a read-only file system: mount it writable';
    return `the data directory ${dataDir} ${why}, or ${other}`;
  }
  const self = process.getuid?.();
  const found = nearest(resolve(path));
  const isDirectory = found.path === resolve(dataDir);
  const subject = isDirectory ? `${dataDir}, which` : `${dataDir}: ${found.path}`;
  const start = `user ${self} cannot use the data directory ${subject}`;
  if (found.uid !== self) {
    return `${start} belongs to user ${found.uid}: run the command as its user, or ${other}`;
  }
  const mode = (found.mode & 0o7777).toString(8).padStart(4, '0');
  return `${start} has the mode ${mode}: change the mode, or ${other}`;
}

/** The path, or its nearest parent that this user can see. */
function nearest(path: string): { path: string; uid: number; mode: number } {
  try {
    const { uid, mode } = statSync(path);
    return { path, uid, mode };
  } catch (error) {
    if (dirname(path) === path) throw error;
    return nearest(dirname(path));
  }
}
