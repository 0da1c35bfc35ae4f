/**
 * `<data>/bucket`: the name of the bucket that has the blobs of a data directory, once it has one.
 * Without it a start with other settings would find none of its files, and remove none of theirs.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { syncDirectory } from '../../proto/common/durable.ts';
import { ConfigError } from '../../proto/common/env.ts';

export const MARKER = 'bucket';

/** `s3://bucket/prefix`; empty when blobs are files. */
export function markedBucket(dataDir: string): string {
  const path = join(dataDir, MARKER);
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
}

/** Durable when it returns. */
export function markBucket(dataDir: string, name: string): void {
  writeFileSync(join(dataDir, MARKER), `${name}\n`, { mode: 0o600, flush: true });
  syncDirectory(dataDir);
}

/** `name`: the bucket of the settings. Throws ConfigError when the blobs are elsewhere. */
export function checkBucketOf(dataDir: string, name: string): void {
  const marked = markedBucket(dataDir);
  if (marked === name) return;
  if (marked !== '') {
    const found = name === '' ? 'is not set' : `is ${name}`;
    throw new ConfigError(
      `TABERN_BLOBS ${found}, but the files of ${dataDir} are in ${marked}: set that bucket, or, ` +
        `after a copy of all objects, write its name into ${join(dataDir, MARKER)}`,
    );
  }
  const folder = join(dataDir, 'blobs');
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    throw new ConfigError(
      `TABERN_BLOBS is ${name}, but ${folder} has files: move them there by \`tabern move --s3\``,
    );
  }
  markBucket(dataDir, name);
}
