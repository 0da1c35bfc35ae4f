/**
 * The process of power-stored.test.ts whose disk loses its power. Prints `begun`, then a line for
 * each acknowledgement; ends by SIGKILL only.
 */
import { createReadStream, writeSync } from 'node:fs';
import { join } from 'node:path';
import { newId } from '../../core/common/ids.ts';
import { openBlobFiles } from '../../core/files/blob-files.ts';
import { restoreBackup } from '../../core/maintenance/backup/restore.ts';
import { openDatabase } from '../../core/store/sqlite/engine/open.ts';
import { openStore } from '../../core/store/thread.ts';

const [what = '', dir = '', ...rest] = process.argv.slice(2);
const CONTENT_BYTES = 100_000;
const say = (line: string) => void writeSync(1, `${line}\n`);

setInterval(() => {}, 60_000);
say('begun');
switch (what) {
  case 'restore':
    await restoreBackup({ bytes: createReadStream(rest[0] ?? ''), dataDir: dir });
    say('restored');
    break;
  case 'migrate':
    openDatabase({ dir, durability: 'full' });
    say('migrated');
    break;
  case 'save':
    await save(rest[0] ?? '', rest[1] ?? '');
}

/** Saves a context's content repeatedly, as core receives it from a runner. */
async function save(projectId: string, contextId: string): Promise<void> {
  const store = await openStore({ dir, durability: 'full', onFatal: () => process.exit(70) });
  const files = await openBlobFiles(join(dir, 'blobs'));
  for (let n = 0; ; n += 1) {
    const [id, createdAt] = [newId(), Date.now()];
    const bytes = Buffer.alloc(CONTENT_BYTES, n);
    const written = await files.write(id, [bytes] as never, CONTENT_BYTES);
    await store.addBlob({ id, projectId, kind: 'CONTEXT', ...written, createdAt });
    const at = Date.now();
    const saved = await store.replaceContext({ id: contextId, projectId, blobId: id, at });

    if (saved.outcome === 'refused') throw new Error(saved.outcome);
    say(id);
  }
}
