/**
 * Checks the entries of a profile: the limits, and which names may occur together. An accepted name
 * is a plain path inside the directory, and no other spelling of it occurs. Pure.
 */
import { CONTEXT_MAX_BYTES } from '../common/limits.ts';
import type { TarEntry } from './tar-reader.ts';

/** Source: proto/spec/contexts.md 4. */
export const PROFILE_LIMITS = {
  /** In bytes, as stored. */
  packedMaxBytes: CONTEXT_MAX_BYTES,
  /** In bytes, of the tar. */
  unpackedMaxBytes: 2 * 1024 ** 3,
  /** Counts directories that only occur in paths too. */
  entriesMax: 50_000,
  /** Unpacked to packed. */
  ratioMax: 100,
  /**
   * In bytes. Ours: smaller profiles skip the ratio check; a small profile of zeros is not a bomb.
   */
  ratioFromBytes: 16 << 20,
};

export type ProfileLimits = typeof PROFILE_LIMITS;

/** In bytes. Source: NAME_MAX and PATH_MAX of Linux, minus room for the directory itself. */
const NAME_MAX_BYTES = 255;
const PATH_MAX_BYTES = 3_072;
/** Ours: Chrome nests about ten levels. */
const DEPTH_MAX = 32;
/** biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for. */
const CONTROL = /[\u0000-\u001f\u007f]/;
const SET_ID_BITS = 0o6000;

export class ProfileError extends Error {
  override readonly name = 'ProfileError';
}

/**
 * Checks one entry after the other; returns the normalised path, `''` for the directory itself.
 * Throws a ProfileError.
 */
export function profileJudge(limits: ProfileLimits): (entry: TarEntry) => string {
  /** Folded path -> its spelling and kind. */
  const seen = new Map<string, { path: string; kind: 'file' | 'directory' | 'parent' }>();

  const add = (path: string, kind: 'file' | 'directory' | 'parent'): void => {
    seen.set(folded(path), { path, kind });
    if (seen.size > limits.entriesMax) throw new ProfileError('too many entries');
  };
  const addParents = (path: string): void => {
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
      const parent = path.slice(0, at);
      const there = seen.get(folded(parent));
      if (there === undefined) add(parent, 'parent');
      else if (there.path !== parent) throw new ProfileError('two spellings of a name');
      else if (there.kind === 'file') throw new ProfileError('a file where a directory is');
    }
  };
  return ({ kind, path: raw, mode }) => {
    if (kind === 'file' && (mode & SET_ID_BITS) !== 0) throw new ProfileError('a set-id bit');
    const path = normalised(raw);
    if (path === '') {
      if (kind === 'file' || seen.has('')) throw new ProfileError('a name of nothing');
      add('', 'directory');
      return path;
    }
    addParents(path);
    const there = seen.get(folded(path));
    // a directory may follow its contents; other names must not repeat
    const isParent = there?.kind === 'parent' && there.path === path && kind === 'directory';
    if (there !== undefined && !isParent) throw new ProfileError('a name twice');
    add(path, kind);
    return path;
  };
}

/** Removes a leading `./` and a trailing `/`, which archivers write. */
function normalised(raw: string): string {
  const path = raw.replace(/^(?:\.\/)+/, '').replace(/\/$/, '');
  if (path === '.' || (path === '' && raw.startsWith('./'))) return '';
  const names = path.split('/');
  const isWrong = (name: string): boolean =>
    name === '' || name === '.' || name === '..' || Buffer.byteLength(name) > NAME_MAX_BYTES;
  if (CONTROL.test(path) || names.length > DEPTH_MAX || names.some(isWrong)) {
    throw new ProfileError('a name that is not allowed');
  }
  if (Buffer.byteLength(path) > PATH_MAX_BYTES) throw new ProfileError('a name too long');
  return path;
}

/** Folds names that a file system may treat as equal. */
function folded(path: string): string {
  return path.normalize('NFC').toLowerCase().normalize('NFC');
}
