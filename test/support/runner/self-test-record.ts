/**
 * Lends the record of Chrome's self-test from one service of the tests to the next: each would
 * start Chrome once more for its new data directory, for a second of CPU time. A runner takes it
 * only with the same Chrome, sandbox, release and boot (runner/machine/self-test-record.ts).
 */
import { copyFileSync, existsSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';

const KEPT = join(import.meta.dirname, '../../../node_modules/.cache/test-self-test');
const RECORD = 'browser-self-test';
/** Of the cache directory of a runner, which begins anew without the first. */
const FILES = ['boot', RECORD];

/** Before the first start of a service. */
export function lendSelfTest(dataDir: string): void {
  const cache = join(dataDir, 'cache');
  if (existsSync(cache) || !existsSync(join(KEPT, RECORD))) return;
  mkdirSync(cache, { recursive: true, mode: 0o700 });
  for (const name of FILES) copyFileSync(join(KEPT, name), join(cache, name));
}

/** After the end of a service. */
export function keepSelfTest(dataDir: string): void {
  const cache = join(dataDir, 'cache');
  if (!statSync(join(cache, RECORD), { throwIfNoEntry: false })?.isFile()) return;
  mkdirSync(KEPT, { recursive: true });
  for (const name of FILES) {
    const written = join(KEPT, `${name}.${process.pid}`);
    copyFileSync(join(cache, name), written);
    renameSync(written, join(KEPT, name)); // files run side by side
  }
}
