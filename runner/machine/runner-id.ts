/** The id of a runner: one per data directory, stable over restarts. */
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createFile, replaceFile } from '../../proto/common/durable.ts';
import type { Log } from '../../proto/common/log.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Replaces a file without a valid UUID; core then treats the old id's work as lost. */
export function runnerId(dataDir: string, log: Log): string {
  const path = join(dataDir, 'keys', 'runner.id');
  if (!existsSync(path)) create(path);
  const found = readFileSync(path, 'utf8').trim();
  if (UUID.test(found)) return found;
  const id = randomUUID();
  log.warn({ path, length: found.length }, 'the file of the runner id holds no UUID: replaced');
  replaceFile(path, `${id}\n`);
  return id;
}

function create(path: string): void {
  try {
    createFile(path, `${randomUUID()}\n`);
  } catch (error) {
    // another runner may have created it
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
