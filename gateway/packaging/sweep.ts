/**
 * Removes files of earlier versions of the executable, 180 MB each. Keeps running versions and
 * recently used ones, so that a downgrade stays possible.
 */
import { readdirSync, readlinkSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';

/** Ours: one month without a start. */
const UNUSED_MS = 30 * 24 * 3_600_000;
/** Ours: unpacking takes a second; a start that was killed meanwhile leaves partial files. */
const PART_MS = 3_600_000;
const TREE = /^\d+\.\d+\.\d+\S*-[0-9a-f]{16}$/;
const PART = /^\.part-/;

/**
 * Records the start. When this is not writable, the tree is removed and unpacked again some day.
 */
export function touch(dir: string, nowMs: number): void {
  try {
    utimesSync(dir, nowMs / 1_000, nowMs / 1_000);
  } catch {
    // the file system is read-only by now
  }
}

/** Files that cannot be removed stay: the start does not fail. */
export function sweep(root: string, nowMs: number): void {
  const running = programsThatRun();
  for (const name of readdirSync(root)) {
    const keepMs = TREE.test(name)
      ? UNUSED_MS
      : PART.test(name)
        ? PART_MS
        : Number.POSITIVE_INFINITY;
    const dir = join(root, name);
    const { mtimeMs = nowMs } = statSync(dir, { throwIfNoEntry: false }) ?? {};
    if (nowMs - mtimeMs < keepMs) continue;
    if (running.some((program) => program.startsWith(`${dir}/`))) continue;
    try {
      rmSync(dir, { recursive: true, force: true });
    } catch {
      // another user's
    }
  }
}

/** Processes of this user; of root, all processes. */
function programsThatRun(): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      return [readlinkSync(`/proc/${pid}/exe`)];
    } catch {
      return []; // ended, or of another user
    }
  });
}
