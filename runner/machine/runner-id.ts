/** The id of a runner: one per data directory, stable over restarts. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createFile, replaceFile } from '../../proto/common/durable.ts';
import type { Log } from '../../proto/common/log.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * A file without a valid UUID is replaced: core treats the old id's work as lost within a lease.
 */
export function runnerId(dataDir: string, log: Log): string {
  const path = join(dataDir, 'keys', 'runner.id');
  const found = read(path);
  if (found !== undefined && UUID.test(found)) return found;
  const id = randomUUID();
  if (found === undefined) return create(path, id);
  log.warn({ path, length: found.length }, 'the file of the runner id holds no UUID: replaced');
  replaceFile(path, `${id}\n`);
  return id;
}

/** Another runner may have been faster. */
function create(path: string, id: string): string {
  try {
    createFile(path, `${id}\n`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return readFileSync(path, 'utf8').trim();
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
