/**
 * The process that crash.test.ts kills: accepts invocations, 16 at a time, and writes the id of
 * each acknowledged one on stdout. Arguments: data directory, crash point or nothing.
 */
import { writeSync } from 'node:fs';
import { newId } from '../../../core/common/ids.ts';
import { openStore } from '../../../core/store/thread.ts';

const [dir = '', projectId = '', functionId = '', versionId = '', crashAt] = process.argv.slice(2);
const store = await openStore({
  dir,
  durability: 'full',
  crashAt: crashAt || undefined,
  onFatal: () => process.exit(70),
});
const session = { sessionParams: '{}', contextId: null, userMetadata: null };
const rest = { params: '{}', region: 'us-west-2', timeoutMs: 900_000, queueMax: 1_000_000 };

await Promise.all(
  Array.from({ length: 16 }, async () => {
    for (;;) {
      const at = Date.now();
      const ids = { id: newId(), sessionId: newId(), projectId, functionId, versionId };
      await store.acceptInvocation({ ...ids, ...session, ...rest, at, waitUntil: at + 3_600_000 });
      say(`${ids.id}\n`);
    }
  }),
);

/** At once and whole, also when the reader is slow: its pipe does not block. */
function say(line: string): void {
  for (;;) {
    try {
      writeSync(1, line);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }
}
