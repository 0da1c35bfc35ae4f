/**
 * The process that idempotency.test.ts kills: accepts invocations with keys k0, k1 and so on, 16 at
 * a time, and writes each acknowledged key with its invocation's id on stdout. Arguments: data
 * directory, project, function, version, crash point.
 */
import { writeSync } from 'node:fs';
import { newId } from '../../../core/common/ids.ts';
import { openStore } from '../../../core/store/thread.ts';
import { T0 } from '../store/engines.ts';

const [dir = '', projectId = '', functionId = '', versionId = '', crashAt] = process.argv.slice(2);
const onFatal = () => process.exit(70);
const store = await openStore({ dir, durability: 'full', crashAt, onFatal });
const rest = {
  projectId,
  functionId,
  versionId,
  params: '{}',
  region: 'us-west-2',
  timeoutMs: 900_000,
  sessionParams: '{}',
  contextId: null,
  userMetadata: null,
  waitUntil: T0 + 3_600_000,
  queueMax: 1_000_000,
  at: T0,
};
let next = 0;

await Promise.all(
  Array.from({ length: 16 }, async () => {
    for (;;) {
      const key = `k${next++}`;
      const idempotency = { key, requestHash: Buffer.from('x'), expiresAt: T0 + 86_400_000 };
      const ids = { id: newId(), sessionId: newId() };
      const { id } = await store.acceptInvocation({ ...ids, ...rest, idempotency });
      writeSync(1, `${key} ${id}\n`);
    }
  }),
);
