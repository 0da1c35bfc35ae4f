/**
 * Room on the data directory's disk. A reserve file is given up when little is left, so that what
 * runs can still reach its end and say so, while new work is refused; it is taken again when there
 * is room.
 *   roomy --free < lowBytes--> low (the reserve is gone, new work is refused)
 *   low --free > highBytes--> roomy (the reserve is back)
 */
import { execFile } from 'node:child_process';
import { rmSync, statfsSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Log } from '../../proto/common/log.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { periodically } from '../common/periodically.ts';

export type DiskRule = {
  /** In bytes: the size of the reserve. */
  reserveBytes: number;
  /** In bytes: below it the reserve is given up. */
  lowBytes: number;
  /** In bytes: above it the reserve is taken again. */
  highBytes: number;
  periodMs: number;
};

const MIB = 1 << 20;
/** Why: core/README.md. Looked at once a second: a fast disk fills 1 GiB in that. */
export const DISK_RULE: DiskRule = {
  reserveBytes: 64 * MIB,
  lowBytes: 256 * MIB,
  highBytes: 512 * MIB,
  periodMs: 1_000,
};
const NAME = 'reserve';
const CHUNK_BYTES = MIB;

export type Disk = {
  /** Whether new work is refused. */
  readonly isLow: boolean;
  /** In bytes, to be had by us, as of the last look. */
  readonly freeBytes: number;
  /** Throws STORAGE_FULL while there is little room. */
  checkRoom(): void;
};

/** Looks at once, and on until it is disposed of; the reserve stays. */
export function openDisk(options: {
  dir: string;
  log: Log;
  rule?: DiskRule;
  /** In bytes, for tests. */
  freeOf?: (dir: string) => number;
}): Disk & AsyncDisposable {
  const { dir, log, rule = DISK_RULE, freeOf = freeBytesOf } = options;
  const path = join(dir, NAME);
  let freeBytes = 0;
  let isLow = false;

  /** Sets what it finds; a reserve is taken later, as that takes time. */
  function look(): void {
    freeBytes = freeOf(dir);
    if (!isLow && freeBytes < rule.lowBytes) {
      isLow = true;
      rmSync(path, { force: true });
      log.error({ freeBytes, lowBytes: rule.lowBytes }, 'the disk is almost full: no new work');
    } else if (isLow && freeBytes > rule.highBytes) {
      isLow = false;
      log.info({ freeBytes }, 'the disk has room again');
    }
  }

  async function keepReserve(): Promise<void> {
    const isMissing = sizeOf(path) < rule.reserveBytes;
    // Not when it would itself leave little.
    if (isLow || !isMissing || freeBytes - rule.reserveBytes < rule.lowBytes) return;
    try {
      await allocate(path, rule.reserveBytes);
    } catch (error) {
      rmSync(path, { force: true });
      throw error;
    }
  }

  async function run(): Promise<void> {
    look();
    await keepReserve();
  }

  look();
  const failure = 'checking the free disk space failed';
  const checks = periodically(rule.periodMs, run, { log, failure });
  return {
    get isLow() {
      return isLow;
    },
    get freeBytes() {
      return freeBytes;
    },
    checkRoom() {
      if (!isLow) return;
      const message = 'The disk is almost full: no new work is taken. Try again later.';
      throw new Fault('STORAGE_FULL', message);
    },
    [Symbol.asyncDispose]: () => checks[Symbol.asyncDispose](),
  };
}

function freeBytesOf(dir: string): number {
  const { bavail, bsize } = statfsSync(dir);
  return bavail * bsize;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Blocks of its own: a hole in a file reserves nothing. At once where the file system can. */
async function allocate(path: string, bytes: number): Promise<void> {
  try {
    await promisify(execFile)('fallocate', ['--length', String(bytes), path]);
  } catch {
    await using file = await open(path, 'w', 0o600); // no such command, or the file system cannot
    await fill(file, bytes);
  }
}

async function fill(file: FileHandle, bytes: number): Promise<void> {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (let left = bytes; left > 0; ) {
    const { bytesWritten } = await file.write(chunk, 0, Math.min(left, chunk.length));
    left -= bytesWritten;
  }
}
