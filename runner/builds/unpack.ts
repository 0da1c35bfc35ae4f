/**
 * Unpacks a project's archive. Guarantees: nothing is written outside the directory, and no link in
 * it leads outside. The archive is read twice: the first pass checks every entry, the second writes
 * those of the project. An entry that no packer of sources writes fails the build by name. Used in
 * the build's jail.
 */
import { createReadStream } from 'node:fs';
import { lstat, realpath, unlink } from 'node:fs/promises';
import { isAbsolute, join, posix, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Parser, type ReadEntry, extract as writeEntries } from 'tar';
import { ignoring } from '../common/errno.ts';
import { type BuildFailure, buildError } from './build-failure.ts';

/** Unpacked to packed. Ours: sources pack 3 to 20 to 1, a bomb 1,000 to 1. */
const RATIO_MAX = 300;
const HEADER_BYTES = 512;
const ENTRY_DEPTH_MAX = 64;
/** In characters. Ours: far below the system's limit, so that the directory's own path fits. */
const PATH_MAX_CHARACTERS = 1_024;

/**
 * Not unpacked: dependencies come from the lock file, settings of npm and pnpm from the operator,
 * and hooks of pnpm are never run.
 */
const NOT_OWN = String.raw`node_modules|\.git|\.npmrc|\.pnpmfile(?:\.[^/]*)?|pnpm-workspace\.ya?ml`;
const SKIPPED = new RegExp(`(?:^|/)(?:${NOT_OWN})(?:/|$)|^\\.browserbase(?:/|$)`);

const orBroken = ignoring('ENOENT', 'ELOOP', 'ENOTDIR');

export type ArchiveLimits = { entriesMax: number; unpackedMaxBytes: number };
/** Ours: far above any project of 25 MB packed. Bytes include headers. */
const LIMITS: ArchiveLimits = { entriesMax: 20_000, unpackedMaxBytes: 256 * 1024 * 1024 };

type Checked = { files: Set<string>; links: Set<string>; names: Set<string> };

/**
 * Unpacks the gzip tar `file` into the existing, empty directory `into`. Returns the number of
 * entries. Throws a BuildFailure.
 */
export async function unpack(file: string, into: string, limits = LIMITS): Promise<number> {
  const checked = await check(file, limits);
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
  for (const link of checked.links) await settleLink(into, link);
  return checked.names.size;
}

function mode(entry: ReadEntry): number {
  return entry.type === 'Directory' || ((entry.mode ?? 0) & 0o100) !== 0 ? 0o755 : 0o644;
}

// --- first pass ---

async function check(file: string, limits: ArchiveLimits): Promise<Checked> {
  const checked: Checked = { files: new Set(), links: new Set(), names: new Set() };
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
    await pipeline(createReadStream(file), parser as unknown as NodeJS.WritableStream);
  } catch (error) {
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
      checkTarget(name, entry.linkpath ?? '');
      checked.links.add(name);
      return;
    case 'Link': {
      // A hard link shares the bytes of a file: allowed only for an earlier file of the archive.
      const target = nameOf(entry.linkpath ?? '', entry.path);
      if (!checked.files.has(target) || checked.links.has(target)) throw outside(entry.path);
      return;
    }
    default:
      throw refused(`${quoted(entry.path)} is a ${entry.type}; only files, folders and links`);
  }
}

/** The normalised path inside the archive; '.' for the root. `named` is for the error. */
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

function checkTarget(name: string, target: string): void {
  const normal = posix.normalize(posix.join(posix.dirname(name), target));
  if (target === '' || target.startsWith('/') || normal === '..' || normal.startsWith('../')) {
    throw outside(name);
  }
}

/** Refuses a path through a link: the file would be written to the target of the link. */
function checkParents(name: string, { links }: Checked): void {
  for (let at = posix.dirname(name); at !== '.'; at = posix.dirname(at)) {
    if (links.has(at)) throw refused(`${quoted(name)} lies behind the link ${quoted(at)}`);
  }
}

// --- after the second pass ---

/**
 * Checks a written link: names alone do not show where a chain of links ends. Removes a link to a
 * skipped entry.
 */
async function settleLink(root: string, name: string): Promise<void> {
  const path = join(root, name);
  const found = await lstat(path).catch(orBroken);
  if (!found?.isSymbolicLink()) return;
  const real = await realpath(path).catch(orBroken);
  if (real === undefined) return unlink(path);
  const within = relative(await realpath(root), real);
  if (within === '..' || within.startsWith('../') || isAbsolute(within)) throw outside(name);
}

// --- errors ---

function outside(path: string): BuildFailure {
  return refused(`${quoted(path)} leads outside the project; remove it or copy the file`);
}

function refused(problem: string): BuildFailure {
  return buildError(`the archive was refused: ${problem}`);
}

function unreadable(cause: unknown): BuildFailure {
  const message = cause instanceof Error ? cause.message : String(cause);
  const problem = /ratio/.test(message)
    ? 'the archive was refused: it unpacks to far more than its size'
    : 'the archive cannot be read; it must be a gzip tar of the project';
  return buildError(problem, cause);
}

function quoted(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
}
