/**
 * Checks a data directory, whether or not a core uses it: room and speed of its disk, the database,
 * the master key, the files, the clock. Changes nothing.
 */
import { randomUUID } from 'node:crypto';
import { constants, existsSync, statSync } from 'node:fs';
import { access, open, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Finding, fail, ok, warn } from '../../proto/common/diagnostics.ts';
import { ConfigError, type Env } from '../../proto/common/env.ts';
import { sizeText } from '../../proto/terminal/size.ts';
import { openSealer } from '../common/sealer.ts';
import { type CoreConfig, readCoreConfig } from '../config.ts';
import { markedBucket } from '../files/bucket-marker.ts';
import { checkedBytes, isDamage } from '../files/checked-bytes.ts';
import { DISK_RULE } from '../files/disk-space.ts';
import { nameOf, type S3Place } from '../files/s3/place.ts';
import { hasDatabase } from '../store/database-file.ts';
import { inspectDatabase, isDatabaseNewer } from '../store/offline.ts';
import { inspectPostgres } from '../store/server.ts';
import type { Inspected } from '../store/types/database.ts';
import { checkKeys } from './doctor-keys.ts';

const MIB = 1 << 20;
/** Ours: twice what core keeps free. */
const ROOM_WARN_BYTES = 2 * DISK_RULE.highBytes;
const SYNCS = 20;
const SYNC_BYTES = 4 << 10;
/** In milliseconds, the median. Ours: each acknowledged write waits for a sync. */
const SYNC_SLOW_MS = 50;
/** A clock before this was never set. */
const YEAR_MIN = 2025;
/** In milliseconds, as core's own warning. */
const BEHIND_MAX_MS = 60_000;
/** Bytes of one read. */
const READ_BYTES = MIB;
/** Damaged files that a finding names. Ours. */
const NAMED_MAX = 3;

/**
 * Throws ConfigError when this version cannot open the stored data, which a running one has still
 * open. The engine in a database server refuses at its start.
 */
export function checkNewer(env: Env): void {
  const { dataDir, database } = readCoreConfig(env);
  if (database !== undefined || !hasDatabase(dataDir) || !isDatabaseNewer(dataDir)) return;
  throw new ConfigError('the data directory was written by a newer tabern; run that one');
}

/** Runs the checks one after the other; they are independent. */
export async function* checkData(
  env: Env,
  { now = Date.now, isDeep = false }: { now?: () => number; isDeep?: boolean } = {},
): AsyncGenerator<Finding> {
  let dataDir: string;
  let bucket: S3Place | undefined;
  let server: CoreConfig['database'];
  try {
    ({ dataDir, bucket, database: server } = readCoreConfig(env));
    yield ok('settings', 'core can read its own');
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    yield fail('settings', error.message, '`tabern config` shows what is set, and where');
    return;
  }
  const place = nearest(dataDir);
  const writable = await checkWritable(dataDir, place);
  yield writable;
  if (writable.level === 'fail') return;
  yield await checkRoom(place);
  yield await checkSync(place);
  if (existsSync(join(dataDir, 'keys'))) yield checkKeys(dataDir);
  if (server === undefined && !hasDatabase(dataDir)) {
    yield ok('database', 'none yet: the first start makes it');
    if (bucket !== undefined) yield await ofBucket(bucket, { dataDir, found: undefined });
    yield clock(undefined, now());
    return;
  }
  const read = async () =>
    server ? inspectPostgres({ ...server, url: server.directUrl }) : inspectDatabase(dataDir);
  const found = await read();
  yield server && found.problems.length === 0 ? ok('database', 'in PostgreSQL') : database(found);
  if (found.problems.length === 0) {
    yield masterKey(dataDir, found);
    const marked = markedBucket(dataDir);
    if (marked !== '' && marked !== nameOf(bucket)) yield elsewhere(marked);
    else if (bucket === undefined) yield await files(dataDir, { found, read, isDeep });
    else yield await ofBucket(bucket, { dataDir, found });
  }
  yield clock(found.lastTime, now());
}

/** The directory, or its nearest existing parent. */
function nearest(path: string): string {
  return existsSync(path) ? path : nearest(dirname(path));
}

async function checkWritable(dataDir: string, place: string): Promise<Finding> {
  const path = join(place, `.doctor-${randomUUID()}`);
  try {
    if (!statSync(place).isDirectory()) return notWritable(place, 'it is no directory');
    await access(place, constants.R_OK | constants.W_OK | constants.X_OK);
    await using file = await open(path, 'wx', 0o600);
    await file.writeFile('x');
    return ok('data', place === dataDir ? dataDir : `${dataDir} will be made`);
  } catch (error) {
    return notWritable(place, (error as NodeJS.ErrnoException).code ?? String(error));
  } finally {
    await rm(path, { force: true }).catch(() => undefined); // where nothing could be written
  }
}

function notWritable(place: string, why: string): Finding {
  const fix = 'set TABERN_DATA to a directory that this user may write, with room in it';
  return fail('data', `cannot write into ${place} (${why})`, fix);
}

/** `freeOf`: for tests. */
export async function checkRoom(place: string, freeOf = freeBytesOf): Promise<Finding> {
  const free = await freeOf(place);
  const says = `${sizeText(free)} free`;
  const fix = 'make room, or lower the TABERN_*_DAYS of what is kept';
  if (free < DISK_RULE.lowBytes) {
    return fail('disk', `${says}: new work is refused below ${sizeText(DISK_RULE.lowBytes)}`, fix);
  }
  return free < ROOM_WARN_BYTES ? warn('disk', says, fix) : ok('disk', says);
}

async function freeBytesOf(place: string): Promise<number> {
  const { bavail, bsize } = await statfs(place);
  return bavail * bsize;
}

async function checkSync(place: string): Promise<Finding> {
  const path = join(place, `.doctor-${randomUUID()}`);
  const tookMs: number[] = [];
  try {
    await using file = await open(path, 'wx', 0o600);
    for (let n = 0; n < SYNCS; n++) {
      const startedAt = performance.now();
      await file.write(Buffer.alloc(SYNC_BYTES));
      await file.sync();
      tookMs.push(performance.now() - startedAt);
    }
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error);
    return fail('fsync', `a write did not reach the disk (${why})`, 'replace or repair the disk');
  } finally {
    await rm(path, { force: true }).catch(() => undefined); // where nothing could be written
  }
  const middleMs = tookMs.sort((a, b) => a - b)[SYNCS / 2] ?? 0;
  const says = `${middleMs.toFixed(1)} ms`;
  if (middleMs <= SYNC_SLOW_MS) return ok('fsync', says);
  return warn(
    'fsync',
    `${says}: each write waits for it`,
    'move the data directory to a local SSD',
  );
}

function database({ problems, blobs }: Inspected): Finding {
  if (problems.length === 0) return ok('database', `whole; it names ${blobs.length} files`);
  const fix = 'stop the service, and `tabern restore` a backup into a new directory';
  return fail('database', problems[0] ?? '', fix);
}

function masterKey(dataDir: string, { masterKeyCheck }: Inspected): Finding {
  const path = join(dataDir, 'keys', 'master.key');
  if (masterKeyCheck === null) return ok('master key', 'not needed yet');
  try {
    openSealer(path, masterKeyCheck);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const fix = `put the key that this directory had at ${path}: no other opens its secrets`;
    return fail('master key', error.message, fix);
  }
  if ((statSync(path).mode & 0o077) === 0) return ok('master key', 'opens the secrets');
  return warn('master key', 'others may read it', `chmod 600 ${path}`);
}

function elsewhere(bucket: string): Finding {
  return fail('bucket', `the files are in ${bucket}`, 'set TABERN_BLOBS to it');
}

/** The bucket, and that it has all objects that the database names. */
async function ofBucket(
  place: S3Place,
  { dataDir, found }: { dataDir: string; found: Inspected | undefined },
): Promise<Finding> {
  const { checkBucket } = await import('../files/s3/doctor.ts');
  const path = join(dataDir, 'keys', 'master.key');
  const check = found?.masterKeyCheck ?? null;
  const sealer = check === null || !existsSync(path) ? undefined : openSealer(path, check).sealer;
  const { problem, lost } = await checkBucket(place, { sealer, blobs: found?.blobs ?? [] });
  const name = nameOf(place);
  const settings = 'see "Storage in S3" on the page Deployment, and `tabern config`';
  if (problem !== '') return fail('bucket', problem, settings);
  if (lost.length === 0) return ok('bucket', `${name} has all that the database names`);
  const names = lost.slice(0, NAMED_MAX).join(', ');
  const fix = 'restore them by the versions of the bucket, or from a copy of it';
  return fail('bucket', `${lost.length} are not in ${name}, or not whole: ${names}`, fix);
}

/** `read`: what the database names by then. */
async function files(
  dataDir: string,
  { found, read, isDeep }: { found: Inspected; read: () => Promise<Inspected>; isDeep: boolean },
): Promise<Finding> {
  const damaged: string[] = [];
  for (const blob of found.blobs) {
    const path = join(dataDir, 'blobs', blob.id);
    const file = await stat(path).catch(() => undefined);
    if (file?.size !== blob.size || (isDeep && !(await isWhole(path, blob)))) damaged.push(blob.id);
  }
  // A file may have been removed with its row since the database was read.
  const now = damaged.length === 0 ? found : await read();
  if (now.problems.length > 0) return database(now);
  const still = new Set(now.blobs.map(({ id }) => id));
  const missing = damaged.filter((id) => still.has(id));
  if (missing.length === 0) {
    const says = isDeep ? 'there, whole to the last byte' : 'there, whole by their sizes';
    return ok('files', `all that the database names are ${says}`);
  }
  const names = missing.slice(0, NAMED_MAX).join(', ');
  const fix = `copy them from a backup into ${join(dataDir, 'blobs')}`;
  return fail('files', `${missing.length} are not there, or not whole: ${names}`, fix);
}

/** Reads the whole file, and compares its hash. */
async function isWhole(path: string, blob: Inspected['blobs'][number]): Promise<boolean> {
  try {
    for await (const _ of checkedBytes(path, blob, READ_BYTES));
    return true;
  } catch (error) {
    if (isDamage(error)) return false;
    throw error;
  }
}

function clock(lastTime: number | undefined, at: number): Finding {
  const says = new Date(at).toISOString();
  const fix = 'set the clock, and keep it by NTP: receivers of webhooks compare it with theirs';
  if (new Date(at).getUTCFullYear() < YEAR_MIN) return fail('clock', `it says ${says}`, fix);
  const behindMs = (lastTime ?? 0) - at;
  if (behindMs <= BEHIND_MAX_MS) return ok('clock', says);
  const seconds = Math.round(behindMs / 1_000);
  return warn('clock', `${seconds} s behind what was written here`, fix);
}
