/**
 * Small files and directories that are complete or absent after a power loss: bytes are written to
 * a temporary file and synced, the file is renamed, and its directory is synced. Synchronous,
 * because a start waits for them anyway.
 */
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
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
  const aside = `${path}.new`;
  rmSync(aside, { force: true }); // of a process that was killed
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
