/**
 * Restores a data directory from a backup, completely or not at all: all files are written to a
 * temporary folder, checked against the backup's hashes, synced, and then renamed, the database
 * last.
 */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, open, readdir, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { readTar, TarError } from '../../../proto/archives/tar-reader.ts';
import { syncDirectory } from '../../../proto/common/durable.ts';
import { ConfigError } from '../../../proto/common/env.ts';
import { isId } from '../../common/ids.ts';
import { openSealer } from '../../common/sealer.ts';
import { MARKER, markBucket, markedBucket } from '../../files/bucket-marker.ts';
import { DATABASE } from '../../store/database-file.ts';
import { inspectDatabase } from '../../store/offline.ts';
import { FORMAT, MANIFEST, MASTER_KEY, type Manifest } from './archive.ts';

const ASIDE = '.restore';
/** In bytes. Ours: a manifest is some 300, and 40 for each missing blob. */
const MANIFEST_MAX_BYTES = 16 << 20;

export type Restored = {
  manifest: Manifest;
  /** Whether the directory has the master key. */
  hasMasterKey: boolean;
};

type Found = { size: number; sha256: string };

/** Throws ConfigError for a directory that is not empty, and for an incomplete backup. */
export async function restoreBackup(options: {
  bytes: AsyncIterable<Buffer>;
  dataDir: string;
  /** The text of keys/master.key, if it is not in the backup. */
  masterKey?: string | undefined;
  /** Aborts when the operator interrupts; files that are in place by then stay. */
  signal?: AbortSignal | undefined;
}): Promise<Restored> {
  const { bytes, dataDir, masterKey, signal } = options;
  const { aside, isNew } = await openAside(dataDir);
  let isDone = false;
  try {
    const found = await unpack(bytes, aside, signal);
    const manifest = await check(found, aside);
    if (masterKey !== undefined) await writeKey(aside, masterKey);
    const hasMasterKey = masterKey !== undefined || manifest.hasMasterKey;
    if (hasMasterKey) checkKey(aside);
    if (manifest.bucket !== undefined) markBucket(aside, manifest.bucket);
    signal?.throwIfAborted();
    await put(aside, dataDir);
    isDone = true;
    return { manifest, hasMasterKey };
  } catch (error) {
    throw unusable(dataDir, error);
  } finally {
    await rm(aside, { recursive: true, force: true });
    if (isNew && !isDone) await removeEmpty(dataDir);
  }
}

/** Files that `put` has renamed stay: after a disk failure they may be the only copy. */
async function removeEmpty(dataDir: string): Promise<void> {
  await rmdir(dataDir).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY') throw error;
  });
}

/** Does not create parents: a mistyped path is an error. */
async function openAside(dataDir: string): Promise<{ aside: string; isNew: boolean }> {
  try {
    const isNew = await mkdir(dataDir, { mode: 0o700 }).then(
      () => {
        syncDirectory(dirname(resolve(dataDir)));
        return true;
      },
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
        return false;
      },
    );
    const names = await readdir(dataDir);
    if (names.length > 0) {
      const left = names[0] === ASIDE ? `: ${ASIDE} is of a restore that was ended` : '';
      throw new ConfigError(`${dataDir} is not empty${left}: restore into a new directory`);
    }
    const aside = join(dataDir, ASIDE);
    await mkdir(aside, { mode: 0o700 });
    return { aside, isNew };
  } catch (error) {
    throw unusable(dataDir, error);
  }
}

/** A full disk, or a directory without permission, as an error for the operator. */
function unusable(dataDir: string, error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (error instanceof ConfigError || code === undefined || syscall === undefined) return error;
  const why = code === 'ENOSPC' ? 'its disk is full' : code;
  const message = `cannot restore into ${dataDir} (${why}): name another directory by --data`;
  return new ConfigError(message, { cause: error });
}

/** Writes the files of the tar, and refuses every name that a backup does not have. */
async function unpack(
  bytes: AsyncIterable<Buffer>,
  aside: string,
  signal: AbortSignal | undefined,
): Promise<Map<string, Found>> {
  const found = new Map<string, Found>();
  for (const folder of ['blobs', 'keys']) await mkdir(join(aside, folder), { mode: 0o700 });
  try {
    for await (const { kind, path, size, body } of readTar(bytes)) {
      const isFirst = found.size === 0;
      if (kind !== 'file' || !isKnown(path) || found.has(path) || isFirst !== (path === MANIFEST)) {
        throw wrong(`it holds ${JSON.stringify(path.slice(0, 80))} where no backup does`);
      }
      if (isFirst && size > MANIFEST_MAX_BYTES) throw wrong('its manifest is too large');
      const hash = createHash('sha256');
      await pipeline(
        body,
        async function* (parts) {
          for await (const part of parts as AsyncIterable<Buffer>) {
            signal?.throwIfAborted();
            hash.update(part);
            yield part;
          }
        },
        createWriteStream(join(aside, path), { flags: 'wx', mode: 0o600, flush: true }),
      );
      found.set(path, { size, sha256: hash.digest('hex') });
    }
  } catch (error) {
    if (error instanceof TarError) throw wrong(error.message, error);
    throw error;
  }
  return found;
}

function isKnown(path: string): boolean {
  if (path === MANIFEST || path === DATABASE || path === MASTER_KEY) return true;
  return path.startsWith('blobs/') && isId(path.slice('blobs/'.length));
}

/** Compares every file with its hash, and checks the database. */
async function check(found: ReadonlyMap<string, Found>, aside: string): Promise<Manifest> {
  const manifest = await manifestOf(aside, found);
  const database = found.get(DATABASE);
  if (database?.sha256 !== manifest.database.sha256) throw wrong('its database is not whole');
  const { problems, blobs } = inspectDatabase(aside);
  if (problems.length > 0) throw wrong(problems[0] ?? '');
  const missing = new Set(manifest.missing);
  for (const { id, size, sha256 } of blobs) {
    if (!isId(id)) throw wrong('its database names a file that is no blob'); // ids become paths
    const file = found.get(`blobs/${id}`);
    if (file === undefined && (missing.has(id) || manifest.bucket !== undefined)) continue;
    if (file?.size !== size || file.sha256 !== sha256) throw wrong(`blob ${id} is not whole`);
  }
  const files = [...found.keys()].filter((path) => path.startsWith('blobs/'));
  const known = new Set(blobs.map(({ id }) => `blobs/${id}`));
  const unknown = files.find((path) => !known.has(path));
  if (unknown !== undefined) throw wrong(`its database does not name ${unknown}`);
  return manifest;
}

async function manifestOf(aside: string, found: ReadonlyMap<string, Found>): Promise<Manifest> {
  if (!found.has(MANIFEST)) throw wrong('it is empty');
  try {
    await using file = await open(join(aside, MANIFEST));
    const manifest = JSON.parse(await file.readFile('utf8')) as Partial<Manifest>;
    const { format, database, missing } = manifest;
    if (format !== FORMAT || !database || !Array.isArray(missing)) throw wrong(`not ${FORMAT}`);
    return manifest as Manifest;
  } catch (error) {
    if (error instanceof SyntaxError) throw wrong('its manifest is not JSON', error);
    throw error;
  }
}

async function writeKey(aside: string, text: string): Promise<void> {
  await writeFile(join(aside, MASTER_KEY), text, { mode: 0o600, flush: true });
}

/** Throws ConfigError for a key of another database. */
function checkKey(aside: string): void {
  const { masterKeyCheck } = inspectDatabase(aside);
  openSealer(join(aside, MASTER_KEY), masterKeyCheck);
}

/** The database last: without it the directory is not yet a data directory. */
async function put(aside: string, dataDir: string): Promise<void> {
  for (const folder of ['blobs', 'keys', '']) syncDirectory(join(aside, folder));
  const marker = markedBucket(aside) === '' ? [] : [MARKER];
  for (const name of ['keys', 'blobs', ...marker, DATABASE]) {
    await rename(join(aside, name), join(dataDir, name));
    syncDirectory(dataDir);
  }
}

function wrong(why: string, cause?: unknown): ConfigError {
  return new ConfigError(`this is not a whole backup: ${why}`, { cause });
}
