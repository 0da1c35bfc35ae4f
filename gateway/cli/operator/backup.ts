/**
 * `tabern backup FILE`: all stored data as one tar. A running core creates it; without one, the
 * data directory is read directly. The backup is written to a temporary file and renamed when
 * complete and synced.
 */
import { randomUUID } from 'node:crypto';
import { createWriteStream, existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress } from 'node:zlib';
import { syncDirectory } from '../../../proto/common/durable.ts';
import type { Env } from '../../../proto/common/env.ts';
import { openProgress } from '../../../proto/terminal/progress.ts';
import { EXIT, Exit, endedBySignal } from '../../process/exit-codes.ts';
import type { Given } from '../command.ts';
import { isUnreachable, placeOf, withCore } from './core-client.ts';
import { answer, note, print } from './terminal.ts';

/** Long enough for any disk. */
const TIMEOUT_MS = 86_400_000;

type Part = { totalBytes: number; missing: string[]; bucket: string } | Buffer;
export type Offline = (
  dataDir: string,
  options: { withMasterKey: boolean; signal: AbortSignal },
) => AsyncGenerator<Part>;

export async function backup(
  file: string,
  given: Given,
  { env, offline }: { env: Env; offline: Offline },
): Promise<number> {
  const path = resolve(file);
  if (given['force'] !== true && existsSync(path)) {
    throw new Exit(
      EXIT.config,
      `${path} exists: write to another file, or replace it with --force`,
    );
  }
  const withMasterKey = given['withKeys'] === true;
  const aside = join(dirname(path), `.${basename(path)}.${randomUUID()}.part`);
  const isPacked = path.endsWith('.zst');
  const { dataDir, address } = placeOf(given, env);
  const signal = endedBySignal('no backup was written');
  const target = { aside, isPacked, signal };
  let hasBegun = false;
  try {
    const { bytes, missing, bucket } = await withCore(given, env, ({ operators, call }) => {
      const options = { ...call, timeoutMs: TIMEOUT_MS, signal };
      const parts = ofCore(operators.createBackup({ withMasterKey }, options), () => {
        hasBegun = true;
      });
      return write(parts, target);
    }).catch((error: unknown) => {
      signal.throwIfAborted();
      if (!isUnreachable(error)) throw error;
      if (hasBegun) {
        throw new Exit(EXIT.port, 'the service stopped during the backup: retry', error);
      }
      // A core at another address has another data directory, and its backup was requested.
      if (address !== `unix:${dataDir}/core.sock` || !existsSync(dataDir)) throw error;
      note(`no core runs on ${dataDir}: reading the directory itself`);
      return write(offline(dataDir, { withMasterKey, signal }), target);
    });
    signal.throwIfAborted();
    await rename(aside, path);
    syncDirectory(dirname(path));
    report({ path, bytes, missing, withMasterKey, bucket }, given);
    return missing.length === 0 ? 0 : EXIT.failed;
  } catch (error) {
    signal.throwIfAborted(); // the result of the failed step is not needed
    throw error;
  } finally {
    await rm(aside, { force: true });
  }
}

async function* ofCore(
  parts: AsyncIterable<{ part?: { $case: string; value: unknown } | undefined }>,
  begun: () => void,
): AsyncGenerator<Part> {
  for await (const { part } of parts) {
    begun();
    if (part) yield part.value as Part; // as in the contract: the start, then chunks
  }
}

type Target = { aside: string; isPacked: boolean; signal: AbortSignal };

/** Ends its source before it resolves or rejects. */
async function write(parts: AsyncGenerator<Part>, target: Target) {
  try {
    return await writeAll(parts, target);
  } finally {
    await parts.return(undefined);
  }
}

async function writeAll(parts: AsyncGenerator<Part>, { aside, isPacked, signal }: Target) {
  const first = await parts.next();
  if (first.done || Buffer.isBuffer(first.value)) throw new Error('a backup without a start');
  const { totalBytes, missing, bucket } = first.value;
  const progress = openProgress('backed up', totalBytes);
  const counted = async function* () {
    for await (const part of parts) {
      const chunk = part as Buffer;
      progress.add(chunk.length);
      yield chunk;
    }
  };
  const packed: Transform[] = isPacked ? [createZstdCompress()] : [];
  const target = createWriteStream(aside, { flags: 'wx', mode: 0o600, flush: true });
  try {
    await pipeline([Readable.from(counted()), ...packed, target], { signal });
  } catch (error) {
    throw diskExit(error, aside) ?? error;
  } finally {
    progress.end();
  }
  return { bytes: totalBytes, missing, bucket };
}

function diskExit(error: unknown, path: string): Exit | undefined {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC') {
    return new Exit(EXIT.failed, `the disk of ${dirname(path)} is full: write elsewhere`, error);
  }
  if (code === 'EACCES' || code === 'ENOENT' || code === 'EROFS') {
    return new Exit(EXIT.config, `cannot write into ${dirname(path)} (${code})`, error);
  }
  return undefined;
}

function report(
  done: { path: string; bytes: number; missing: string[]; withMasterKey: boolean; bucket: string },
  given: Given,
): void {
  for (const id of done.missing) {
    note(`warning: the file of blob ${id} is missing or incomplete; requests for it fail`);
  }
  if (done.bucket !== '') {
    note(
      `recordings, downloads, contexts and other files are not included: ${done.bucket} has them`,
    );
  }
  if (!done.withMasterKey) {
    note(
      'the master key is not included: store <data>/keys/master.key separately, or use --with-keys',
    );
  }
  answer(given, done, () => print(done.path));
}
