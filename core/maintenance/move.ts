/**
 * `tabern move`: takes a data directory over to other storage, while no core runs on it. Files are
 * sent to the bucket of the settings: each is verified against its row, uploaded with its hash, and
 * kept in `blobs.moved`. A move that was interrupted goes on where it ended: an object of a bucket
 * is complete or missing. The directory uses the bucket after all objects were found there.
 */
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { syncDirectory } from '../../proto/common/durable.ts';
import { ConfigError, type Env } from '../../proto/common/env.ts';
import { openLog } from '../../proto/common/log.ts';
import { openSealer } from '../common/sealer.ts';
import { readCoreConfig } from '../config.ts';
import type { Blobs } from '../files/blobs.ts';
import { markBucket, markedBucket } from '../files/bucket-marker.ts';
import { checkedBytes, isDamage } from '../files/checked-bytes.ts';
import { type Bucket, openBucket } from '../files/s3/bucket.ts';
import { sentenceOf } from '../files/s3/errors.ts';
import { claimBucket } from '../files/s3/health.ts';
import { lostOf } from '../files/s3/losses.ts';
import { openObjects } from '../files/s3/objects.ts';
import { ownerName, SPOOL } from '../files/s3/open.ts';
import { nameOf, type S3Place } from '../files/s3/place.ts';
import { hasDatabase } from '../store/database-file.ts';
import { inspectDatabase, openOffline } from '../store/offline.ts';
import type { Inspected } from '../store/types/database.ts';

// Both are of `tabern move`, which loads this file alone.
export { moveToPostgres } from './move-database.ts';

/** Files at the same time, each with 5 MiB in memory. Ours. */
const UPLOADS = 4;
const CHUNK_BYTES = 64 << 10;
/** For objects of any size. */
const MAX_BYTES = Infinity;

type Blob = Inspected['blobs'][number];

export type Moved = {
  bucket: string;
  files: number;
  bytes: number;
  /** Ids of files that were lost or damaged before the move. */
  damaged: string[];
  /** The directory with the files as they were; empty when there is none. */
  kept: string;
};

export type MoveProgress = {
  /** What is not in the bucket yet. */
  begun(totalBytes: number): void;
  uploaded(bytes: number): void;
};

/** Throws ConfigError when the directory or the bucket cannot be used. */
export async function moveBlobs(
  env: Env,
  { signal, progress }: { signal: AbortSignal; progress: MoveProgress },
): Promise<Moved> {
  const { dataDir, bucket: place } = readCoreConfig(env);
  if (place === undefined) throw new ConfigError('name the bucket: --s3 s3://bucket/prefix');
  if (!hasDatabase(dataDir)) {
    throw new ConfigError(`${dataDir} is no data directory: set TABERN_DATA or --data`);
  }
  const name = nameOf(place);
  const marked = markedBucket(dataDir);
  if (marked !== '' && marked !== name) {
    throw new ConfigError(`the files of ${dataDir} are in ${marked}: copy that bucket instead`);
  }
  using _ = openOffline(dataDir); // no core starts meanwhile
  const { problems, blobs, masterKeyCheck } = inspectDatabase(dataDir);
  if (problems.length > 0) throw new ConfigError(`${problems[0]}: see \`tabern doctor\``);
  using bucket = openBucket(place);
  const { sealer } = openSealer(join(dataDir, 'keys', 'master.key'), masterKeyCheck);
  const problem = await claimBucket(bucket, ownerName(sealer));
  if (problem !== '') throw new ConfigError(problem);
  const inOrder = blobs.toSorted((one, other) => (one.id < other.id ? -1 : 1));
  const upload = { dataDir, bucket, blobs: inOrder, signal, progress };
  const damaged = marked === '' ? await uploadAll(upload) : [];
  if (marked === '') markBucket(dataDir, name);
  const kept = keepFiles(dataDir);
  const bytes = blobs.reduce((sum, { size }) => sum + size, 0);
  return { bucket: name, files: blobs.length, bytes, damaged, kept };
}

type Upload = {
  dataDir: string;
  bucket: Bucket;
  blobs: readonly Blob[];
  signal: AbortSignal;
  progress: MoveProgress;
};

/** Uploads what the bucket lacks, and compares. Returns the damaged ones. */
async function uploadAll({ dataDir, bucket, blobs, signal, progress }: Upload): Promise<string[]> {
  const log = openLog({ role: 'core', level: 'silent' });
  const objects = await openObjects({ bucket, spoolDir: join(dataDir, SPOOL), log });
  const missing = async () => new Set(await answered(bucket, lostOf(bucket, { blobs, after: '' })));
  const wanted = await missing();
  const waiting = blobs.filter(({ id }) => wanted.has(id));
  progress.begun(waiting.reduce((sum, { size }) => sum + size, 0));
  const damaged: string[] = [];
  const work = async (): Promise<void> => {
    for (let blob = waiting.pop(); blob; blob = waiting.pop()) {
      signal.throwIfAborted();
      if (!(await uploadOne(blob, { dataDir, objects, bucket, signal }))) damaged.push(blob.id);
      progress.uploaded(blob.size);
    }
  };
  await allEnded(Array.from({ length: UPLOADS }, () => work().finally(() => waiting.splice(0))));
  const left = [...(await missing())].filter((id) => !damaged.includes(id));
  if (left.length === 0) return damaged.sort();
  const [first] = left;
  const message = `${left.length} files did not reach the bucket, such as ${first}: move again`;
  throw new ConfigError(message);
}

/** Nothing is uploaded after the first error has been thrown. */
async function allEnded(work: Promise<void>[]): Promise<void> {
  await Promise.allSettled(work);
  await Promise.all(work);
}

/** False for a damaged file, of which nothing is stored. */
async function uploadOne(
  blob: Blob,
  {
    dataDir,
    objects,
    bucket,
    signal,
  }: Pick<Upload, 'dataDir' | 'bucket' | 'signal'> & { objects: Blobs },
): Promise<boolean> {
  async function* bytes() {
    for await (const chunk of checkedBytes(join(dataDir, 'blobs', blob.id), blob, CHUNK_BYTES)) {
      signal.throwIfAborted();
      yield chunk;
    }
  }
  try {
    await answered(bucket, objects.write(blob.id, bytes(), MAX_BYTES));
    return true;
  } catch (error) {
    if (isDamage(error)) return false;
    throw error;
  }
}

/** With the sentence of a bucket that cannot be used. */
async function answered<T>({ place }: { place: S3Place }, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (isDamage(error)) throw error;
    const { name, cause } = error as Error;
    if (name === 'AbortError') throw error;
    throw new ConfigError(`${sentenceOf(cause ?? error, place)} Then move again.`, {
      cause: error,
    });
  }
}

/** The files stay until the operator removes them. */
function keepFiles(dataDir: string): string {
  const [from, to] = [join(dataDir, 'blobs'), join(dataDir, 'blobs.moved')];
  if (existsSync(from) && !existsSync(to)) {
    renameSync(from, to);
    syncDirectory(dataDir);
  }
  return existsSync(to) ? to : '';
}
