/**
 * A backup of a data directory, in use or not: the database at one moment, then each of its blobs.
 * No blob's file is removed meanwhile, so all exist; later writes are in the next backup.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DATABASE } from '../../store/database-file.ts';
import type { Snapshot } from '../../store/messages.ts';
import {
  FORMAT,
  fileMember,
  MANIFEST,
  MASTER_KEY,
  type Manifest,
  type Member,
  sizeOf,
  tarOf,
  textMember,
} from './archive.ts';

/** In the data directory. */
const FOLDER = 'backup';
/** Files that are checked concurrently. Ours. */
const BATCH = 8;

export type BackupSource = {
  dataDir: string;
  version: string;
  /** Copies the database to that path; returns its blobs. */
  snapshot(path: string): Promise<Snapshot>;
  withMasterKey: boolean;
  /** `s3://bucket/prefix`; empty when blobs are files. */
  bucket: string;
  /** Aborts when the client disconnects. */
  signal?: AbortSignal | undefined;
  at: number;
};

export type BackupPart = { totalBytes: number; missing: string[]; bucket: string } | Buffer;

/** Removes the rest of a backup whose process was killed. */
export async function removeLeft(dataDir: string): Promise<void> {
  await rm(join(dataDir, FOLDER), { recursive: true, force: true });
}

/** Yields the total length, then the bytes of the tar. */
export async function* takeBackup(source: BackupSource): AsyncGenerator<BackupPart> {
  const { dataDir, bucket, signal, at } = source;
  const folder = join(dataDir, FOLDER);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { mode: 0o700 });
  try {
    const path = join(folder, DATABASE);
    const named = await source.snapshot(path);
    const blobs = bucket === '' ? named.blobs : [];
    const { members, missing } = await blobMembers(join(dataDir, 'blobs'), blobs, signal);
    const manifest: Manifest = {
      format: FORMAT,
      version: source.version,
      createdAt: new Date(at).toISOString(),
      database: { size: (await stat(path)).size, sha256: await hashOf(path, signal) },
      blobs: members.length,
      missing,
      hasMasterKey: source.withMasterKey,
      ...(bucket !== '' && { bucket }),
    };
    const all = [
      textMember(MANIFEST, `${JSON.stringify(manifest, null, 2)}\n`),
      fileMember(DATABASE, manifest.database.size, path),
      ...members,
      ...(source.withMasterKey ? [await masterKey(dataDir)] : []),
    ];
    yield { totalBytes: sizeOf(all), missing, bucket };
    yield* tarOf(all, at);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function blobMembers(folder: string, blobs: Snapshot['blobs'], signal?: AbortSignal) {
  const members: Member[] = [];
  const missing: string[] = [];
  for (let from = 0; from < blobs.length; from += BATCH) {
    const batch = blobs.slice(from, from + BATCH);
    const whole = await Promise.all(batch.map((blob) => isWhole(folder, blob, signal)));
    for (const [n, { id, size }] of batch.entries()) {
      if (whole[n]) members.push(fileMember(`blobs/${id}`, size, join(folder, id)));
      else missing.push(id);
    }
  }
  return { members, missing };
}

/** Reads the whole file: a damaged one would make a backup that cannot be restored. */
async function isWhole(
  folder: string,
  blob: Snapshot['blobs'][number],
  signal: AbortSignal | undefined,
): Promise<boolean> {
  try {
    const path = join(folder, blob.id);
    const { size } = await stat(path);
    return size === blob.size && (await hashOf(path, signal)) === blob.sha256;
  } catch {
    signal?.throwIfAborted();
    return false; // missing or unreadable
  }
}

async function masterKey(dataDir: string): Promise<Member> {
  return textMember(MASTER_KEY, await readFile(join(dataDir, MASTER_KEY), 'utf8'));
}

/** Lower-case hex. */
export async function hashOf(path: string, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of createReadStream(path)) {
    signal?.throwIfAborted();
    hash.update(part);
  }
  return hash.digest('hex');
}
