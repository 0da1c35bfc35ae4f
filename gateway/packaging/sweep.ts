/**
 * Removes what earlier versions of the executable have left: 180 MB each. Not what runs, and not
 * what may run again: who upgrades may go back.
 */
import { readdirSync, readlinkSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';

/** Ours: a month without a start. */
const UNUSED_MS = 30 * 24 * 3_600_000;
/** Ours: unpacking takes a second; a start that was killed meanwhile leaves its part. */
const PART_MS = 3_600_000;
const TREE = /^\d+\.\d+\.\d+\S*-[0-9a-f]{16}$/;
const PART = /^\.part-/;

/** Says that it was started. Where that cannot be written, it is swept and made again one day. */
export function touch(dir: string, nowMs: number): void {
  try {
    utimesSync(dir, nowMs / 1_000, nowMs / 1_000);
  } catch {
    // a file system that is read-only by now
  }
}

/** What cannot be removed stays: a start does not fail for it. */
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

/** Those of this user; of root, all. */
function programsThatRun(): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      return [readlinkSync(`/proc/${pid}/exe`)];
    } catch {
      return []; // ended, or not ours to know
    }
  });
}
