/**
 * Free space on the data directory's disk. A reserve file is removed when little is left: running
 * work can then still end and report its outcome, while new work is refused. The reserve is
 * allocated again when there is enough space.
 *   roomy --free < lowBytes--> low (no reserve, new work is refused)
 *   low --free > highBytes--> roomy (with the reserve)
 */
import { execFile } from 'node:child_process';
import { rmSync, statfsSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Log } from '../../proto/common/log.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { periodically } from '../common/periodically.ts';

export type DiskRule = {
  /** In bytes: the size of the reserve. */
  reserveBytes: number;
  /** In bytes: below it the reserve is released. */
  lowBytes: number;
  /** In bytes: above it the reserve is allocated again. */
  highBytes: number;
  periodMs: number;
};

const MIB = 1 << 20;
/** Reason: core/README.md. Checked once a second: a fast disk writes 1 GiB in that time. */
export const DISK_RULE: DiskRule = {
  reserveBytes: 64 * MIB,
  lowBytes: 256 * MIB,
  highBytes: 512 * MIB,
  periodMs: 1_000,
};
const NAME = 'reserve';
const CHUNK_BYTES = MIB;

export type Disk = Omit<ReturnType<typeof openDisk>, typeof Symbol.asyncDispose>;

/** Checks at once and periodically until disposed; the reserve stays. */
export function openDisk(options: {
  dir: string;
  log: Log;
  rule?: DiskRule;
  /** In bytes, for tests. */
  freeOf?: (dir: string) => number;
}) {
  const { dir, log, rule = DISK_RULE, freeOf = freeBytesOf } = options;
  const path = join(dir, NAME);
  let freeBytes = 0;
  let isLow = false;

  /** Applies the result of a check; a reserve is allocated later, because that takes time. */
  function look(): void {
    freeBytes = freeOf(dir);
    if (!isLow && freeBytes < rule.lowBytes) {
      isLow = true;
      rmSync(path, { force: true });
      log.error({ freeBytes, lowBytes: rule.lowBytes }, 'disk almost full: refusing new work');
    } else if (isLow && freeBytes > rule.highBytes) {
      isLow = false;
      log.info({ freeBytes }, 'the disk has free space again: accepting new work');
    }
  }

  async function keepReserve(): Promise<void> {
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    // Not when the reserve itself would make the disk low.
    if (isLow || size >= rule.reserveBytes || freeBytes - rule.reserveBytes < rule.lowBytes) return;
    try {
      await allocate(path, rule.reserveBytes);
    } catch (error) {
      rmSync(path, { force: true });
      throw error;
    }
  }

  const run = () => {
    look();
    return keepReserve();
  };

  look();
  const failure = 'checking the free disk space failed';
  const checks = periodically(rule.periodMs, run, { log, failure });
  return {
    /** Whether new work is refused. */
    get isLow(): boolean {
      return isLow;
    },
    /** Available bytes as of the last check. */
    get freeBytes(): number {
      return freeBytes;
    },
    /** Throws STORAGE_FULL while the disk is low. */
    checkRoom(): void {
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

/** Allocates blocks: a sparse file reserves nothing. Instant where the file system supports it. */
async function allocate(path: string, bytes: number): Promise<void> {
  try {
    await promisify(execFile)('fallocate', ['--length', String(bytes), path]);
  } catch {
    // no such command, or not supported by the file system
    await using file = await open(path, 'w', 0o600);
    const chunk = Buffer.alloc(CHUNK_BYTES);
    for (let left = bytes; left > 0; left -= chunk.length) {
      await file.writeFile(chunk.subarray(0, left)); // from where the last one ended
    }
  }
}
