/**
 * Reads a project's file that has to be parsed. The size is checked first, then the nesting depth,
 * so that the parser never sees a hostile file. Used in the build's jail.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { BuildFailure, buildError } from './build-failure.ts';

const MIB = 1024 * 1024;
/** Ours: of package.json and deno.json; those of large projects have 50 KiB. */
export const SETTINGS_MAX_BYTES = MIB;
/** Ours: of a lock file; ten thousand packages take 6 MiB. */
export const LOCK_MAX_BYTES = 16 * MIB;
/** Ours: a lock file has 6. */
const DEPTH_MAX = 64;

export type Json = Record<string, unknown>;

/** Undefined for a missing file or a directory. Throws a BuildFailure that names the file. */
export async function readText(
  root: string,
  file: string,
  maxBytes: number,
): Promise<string | undefined> {
  try {
    // opening a pipe would block without O_NONBLOCK
    await using handle = await open(join(root, file), constants.O_RDONLY | constants.O_NONBLOCK);
    const found = await handle.stat();
    if (found.isDirectory()) return undefined;
    if (!found.isFile()) throw buildError(`${file} is not a file`);
    if (found.size > maxBytes) {
      throw buildError(
        `${file} is larger than ${maxBytes / MIB} MiB; remove what it need not hold`,
      );
    }
    return await handle.readFile('utf8');
  } catch (error) {
    if (error instanceof BuildFailure) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw buildError(`${file} cannot be read`);
  }
}

/** Parses `text` as a JSON object. Throws a BuildFailure that names `file`. */
export function objectOf(text: string, file: string): Json {
  if (isDeep(text)) throw buildError(`${file} nests deeper than ${DEPTH_MAX} levels; flatten it`);
  let found: unknown;
  try {
    found = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    throw buildError(`${file} is not valid JSON; repair it`);
  }
  if (!isObject(found)) throw buildError(`${file} must hold a JSON object`);
  return found;
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether brackets outside strings nest deeper than the limit; one pass. */
function isDeep(text: string): boolean {
  let depth = 0;
  let isString = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (isString) {
      if (char === '\\') at += 1;
      else if (char === '"') isString = false;
    } else if (char === '"') isString = true;
    else if (char === '{' || char === '[') {
      depth += 1;
      if (depth > DEPTH_MAX) return true;
    } else if (char === '}' || char === ']') depth -= 1;
  }
  return false;
}
