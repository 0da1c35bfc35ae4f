/** Directories in memory: tests sync and remove many small files, which takes a disk minutes. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
/** Ours: twenty times what the largest test file stores. */
const FREE_MIN_BYTES = 4 * 1024 ** 3;

const used = new Set<string>();

let chosen: string | undefined;

/** A directory in memory; that of temporary files where memory is short, or runs no programs. */
export function memoryDirectory(): string {
  chosen ??= isUsable() ? MEMORY : tmpdir();
  return chosen;
}

function isUsable(): boolean {
  const path = join(MEMORY, `t-program-${process.pid}`);
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    if (bavail * bsize < FREE_MIN_BYTES) return false;
    writeFileSync(path, '#!/bin/sh\n', { mode: 0o700 });
    execFileSync(path);
    return true;
  } catch {
    return false; // another operating system, or a container without it or with `noexec`
  } finally {
    rmSync(path, { force: true });
  }
}

/**
 * The directory of the temporary files of one test file, which other accounts can use. Its removal
 * includes all that its processes left.
 */
export function temporaryFiles(parent: string): { path: string; remove(): Promise<void> } {
  // short: the path of a socket has at most 107 bytes
  const path = mkdtempSync(join(parent, 't-'));
  chmodSync(path, 0o1777);
  used.add(path);
  return {
    path,
    async remove() {
      // a process that has left its group may still write there
      const removed = rm(path, { recursive: true, force: true, maxRetries: 3 });
      await removed.then(
        () => used.delete(path),
        () => undefined,
      );
    },
  };
}

/** Removes what is left of all: called at the end of the runner. */
export function removeTemporaryFiles(): void {
  for (const path of used) {
    try {
      rmSync(path, { recursive: true, force: true, maxRetries: 3 });
    } catch {} // a process still writes there
  }
}
