/**
 * Unpacks a project's archive. Guarantee: nothing is written outside the directory, and nothing in
 * it leads outside. The whole archive is read twice: first every entry is checked, then what
 * belongs to the project is written. Anything that a packer of sources would never make ends the
 * build with the name of the entry. Used in the build's jail.
 */
import { createReadStream } from 'node:fs';
import { lstat, realpath, unlink } from 'node:fs/promises';
import { isAbsolute, join, posix, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Parser, type ReadEntry, extract as writeEntries } from 'tar';
import { BuildFailure } from './build-failure.ts';

/** Ours: far above any project that fits 25 MB packed. */
export const ENTRIES_MAX = 20_000;
/** In bytes, headers included. Ours. */
export const UNPACKED_MAX_BYTES = 256 * 1024 * 1024;
/** Unpacked to packed. Ours: sources pack 3 to 20 to 1, a bomb 1,000 to 1. */
const RATIO_MAX = 300;
const HEADER_BYTES = 512;
const ENTRY_DEPTH_MAX = 64;
/** In characters. Ours: far below what a system takes, so that the path around it fits. */
const PATH_MAX_CHARACTERS = 1_024;

/**
 * Not the project's own: dependencies come from the lock file, settings of npm and pnpm from the
 * operator, hooks of pnpm from nobody.
 */
const NOT_OWN = [
  ...['node_modules', '\\.git', '\\.npmrc', '\\.pnpmfile(?:\\.[^/]*)?', 'pnpm-workspace\\.ya?ml'],
].join('|');
const SKIPPED = new RegExp(`(?:^|/)(?:${NOT_OWN})(?:/|$)|^\\.browserbase(?:/|$)`);

export type ArchiveLimits = { entriesMax: number; unpackedMaxBytes: number };
const LIMITS: ArchiveLimits = { entriesMax: ENTRIES_MAX, unpackedMaxBytes: UNPACKED_MAX_BYTES };

type Checked = { files: Set<string>; links: Map<string, string>; names: Set<string> };

/** Unpacks the gzip tar `file` into the existing, empty directory `into`. Throws a BuildFailure. */
export async function unpack(
  file: string,
  into: string,
  options: { signal: AbortSignal; limits?: ArchiveLimits },
): Promise<{ entries: number }> {
  const checked = await check(file, options.limits ?? LIMITS, options.signal);
  await writeEntries({
    file,
    cwd: into,
    strict: true,
    preserveOwner: false,
    noMtime: true,
    maxDepth: ENTRY_DEPTH_MAX,
    maxDecompressionRatio: RATIO_MAX,
    filter: (path, entry) => {
      if (SKIPPED.test(posix.normalize(path))) return false;
      // Only the owner's x bit counts: no setuid, nothing writable for all, nothing the owner
      // cannot read.
      if ('header' in entry) entry.mode = mode(entry);
      return true;
    },
  });
  options.signal.throwIfAborted();
  for (const link of checked.links.keys()) await settleLink(into, link);
  return { entries: checked.names.size };
}

function mode(entry: ReadEntry): number {
  return entry.type === 'Directory' || ((entry.mode ?? 0) & 0o100) !== 0 ? 0o755 : 0o644;
}

// --- first reading ---

async function check(file: string, limits: ArchiveLimits, signal: AbortSignal): Promise<Checked> {
  const checked: Checked = { files: new Set(), links: new Map(), names: new Set() };
  let bytes = 0;
  let problem: BuildFailure | undefined;
  const parser = new Parser({
    strict: true,
    maxDecompressionRatio: RATIO_MAX,
    onReadEntry(entry) {
      bytes += entry.size + HEADER_BYTES;
      try {
        if (bytes > limits.unpackedMaxBytes) {
          throw refused(`it unpacks to more than ${limits.unpackedMaxBytes} bytes`);
        }
        take(entry, checked, limits);
      } catch (error) {
        problem ??= error as BuildFailure;
        parser.abort(problem);
      }
      entry.resume();
    },
  });
  try {
    await pipeline(createReadStream(file), parser as unknown as NodeJS.WritableStream, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw problem ?? unreadable(error);
  }
  for (const name of checked.names) checkParents(name, checked);
  return checked;
}

function take(entry: ReadEntry, checked: Checked, limits: ArchiveLimits): void {
  const name = nameOf(entry.path);
  if (SKIPPED.test(name)) return;
  checked.names.add(name);
  if (checked.names.size > limits.entriesMax) {
    throw refused(`it has more than ${limits.entriesMax} entries`);
  }
  switch (entry.type) {
    case 'Directory':
    case 'GNUDumpDir':
      return;
    case 'File':
    case 'OldFile':
    case 'ContiguousFile':
      checked.files.add(name);
      return;
    case 'SymbolicLink':
      checked.links.set(name, symbolicTarget(name, entry.linkpath ?? ''));
      return;
    case 'Link': {
      // A hard link shares the bytes of a file: only of one that this archive brought before.
      const target = nameOf(entry.linkpath ?? '', entry.path);
      if (!checked.files.has(target) || checked.links.has(target)) throw outside(entry.path);
      return;
    }
    default:
      throw refused(`${quoted(entry.path)} is a ${entry.type}; only files, folders and links`);
  }
}

/** Its normalised path inside the archive; '.' for the root. `named` is what a refusal names. */
function nameOf(path: string, named = path): string {
  if (path.length > PATH_MAX_CHARACTERS) {
    throw refused(`${quoted(path)} has more than ${PATH_MAX_CHARACTERS} characters`);
  }
  if (path.split('/', ENTRY_DEPTH_MAX + 1).length > ENTRY_DEPTH_MAX) {
    throw refused(`${quoted(path)} lies deeper than ${ENTRY_DEPTH_MAX} folders`);
  }
  const isUnsafe = path.startsWith('/') || path.includes('\0') || path.split('/').includes('..');
  if (isUnsafe || path === '') throw outside(named);
  return posix.normalize(path).replace(/\/+$/, '');
}

function symbolicTarget(name: string, target: string): string {
  const normal = posix.normalize(posix.join(posix.dirname(name), target));
  if (target === '' || target.startsWith('/') || normal === '..' || normal.startsWith('../')) {
    throw outside(name);
  }
  return normal;
}

/** A path through a link would be written where the link leads. */
function checkParents(name: string, { links }: Checked): void {
  for (let at = posix.dirname(name); at !== '.'; at = posix.dirname(at)) {
    if (links.has(at)) throw refused(`${quoted(name)} lies behind the link ${quoted(at)}`);
  }
}

// --- after the second ---

/**
 * Names alone do not tell where a link through other links leads; a link to what was skipped leads
 * nowhere.
 */
async function settleLink(root: string, name: string): Promise<void> {
  const path = join(root, name);
  const found = await lstat(path).catch(absent);
  if (!found?.isSymbolicLink()) return;
  const real = await realpath(path).catch(absent);
  if (real === undefined) return unlink(path);
  const within = relative(await realpath(root), real);
  if (within === '..' || within.startsWith('../') || isAbsolute(within)) throw outside(name);
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ELOOP' || error.code === 'ENOTDIR') return;
  throw error;
}

// --- words ---

function outside(path: string): BuildFailure {
  return refused(`${quoted(path)} leads outside the project; remove it or copy the file`);
}

function refused(problem: string): BuildFailure {
  return new BuildFailure('BUILD_ERROR', `the archive was refused: ${problem}`);
}

function unreadable(cause: unknown): BuildFailure {
  const message = cause instanceof Error ? cause.message : String(cause);
  const problem = /ratio/.test(message)
    ? 'the archive was refused: it unpacks to far more than its size'
    : 'the archive cannot be read; it must be a gzip tar of the project';
  return new BuildFailure('BUILD_ERROR', problem, cause);
}

function quoted(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
}
