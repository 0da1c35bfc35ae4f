/**
 * Reads a file of a project that has to be parsed: its size first, then how deep it nests, so that
 * what no project has is refused at once. Used in a build's jail.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { BuildFailure } from './build-failure.ts';

const MIB = 1024 * 1024;
/** Ours: of package.json and deno.json; those of large projects have 50 KiB. */
export const SETTINGS_MAX_BYTES = MIB;
/** Ours: of a lock file; ten thousand packages take 6 MiB. */
export const LOCK_MAX_BYTES = 16 * MIB;
/** Ours: a lock file has 6. */
const DEPTH_MAX = 64;

/** Undefined when there is none, or a directory. Throws a BuildFailure that names it. */
export async function readText(
  root: string,
  file: string,
  maxBytes: number,
): Promise<string | undefined> {
  try {
    // a pipe would be waited for
    await using handle = await open(join(root, file), constants.O_RDONLY | constants.O_NONBLOCK);
    const found = await handle.stat();
    if (found.isDirectory()) return undefined;
    if (!found.isFile()) throw failure(`${file} is not a file`);
    if (found.size > maxBytes) {
      throw failure(`${file} is larger than ${maxBytes / MIB} MiB; remove what it need not hold`);
    }
    return await handle.readFile('utf8');
  } catch (error) {
    if (error instanceof BuildFailure) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw failure(`${file} cannot be read`);
  }
}

/** The object that `text` is. Throws a BuildFailure that names `file`. */
export function objectOf(text: string, file: string): Record<string, unknown> {
  if (isDeep(text)) throw failure(`${file} nests deeper than ${DEPTH_MAX} levels; flatten it`);
  let found: unknown;
  try {
    found = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    throw failure(`${file} is not valid JSON; repair it`);
  }
  if (typeof found === 'object' && found !== null && !Array.isArray(found)) {
    return found as Record<string, unknown>;
  }
  throw failure(`${file} must hold a JSON object`);
}

/** Whether brackets outside of strings nest deeper than they may; one pass. */
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

function failure(problem: string): BuildFailure {
  return new BuildFailure('BUILD_ERROR', problem);
}
