/** Who a runner is, the same over restarts: one per data directory. */
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export async function runnerId(dataDir: string): Promise<string> {
  const path = join(dataDir, 'keys', 'runner.id');
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const id = randomUUID();
  await mkdir(join(dataDir, 'keys'), { recursive: true, mode: 0o700 });
  await writeFile(path, `${id}\n`, { mode: 0o600 });
  return id;
}
