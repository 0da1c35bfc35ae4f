/**
 * The process that crash.test.ts kills: creates, starts and ends sessions, and writes each
 * acknowledged operation on stdout. Arguments: data directory, project, crash point.
 */
import { writeSync } from 'node:fs';
import { newId } from '../../../core/common/ids.ts';
import { openStore } from '../../../core/store/thread.ts';
import { must } from '../../../proto/common/must.ts';
import { HOLDER, LEASE_MS } from '../store/engines.ts';

const [dir = '', projectId = '', crashAt = ''] = process.argv.slice(2);
const onFatal = (error: Error) => {
  throw error;
};
const store = await openStore({ dir, durability: 'full', crashAt, onFatal });
const settings = { contextId: null, extensionId: null, keepAlive: false, params: '{}' };

for (;;) {
  const at = Date.now();
  const { id } = await store.createSession({
    id: newId(),
    projectId,
    region: 'us-west-2',
    ...settings,
    timeoutMs: undefined,
    userMetadata: '{"a":"b"}',
    at,
    waitUntil: at + 60_000,
  });
  writeSync(1, `PENDING ${id}\n`);
  const wanted = { ...HOLDER, kind: 'session' as const, leaseIds: [newId()], leaseMs: LEASE_MS };
  const { leaseId } = must((await store.leaseWork({ ...wanted, at }))[0], 'a session');
  await store.startSession({ leaseId, startedAt: at, at });
  writeSync(1, `RUNNING ${id}\n`);
  await store.releaseSession({ id, projectId, at });
  const end = { status: 'COMPLETED', reason: 'over', proxyBytes: 1 } as const;
  await store.completeSession({ leaseId, ...end, at });
  writeSync(1, `COMPLETED ${id}\n`);
}
