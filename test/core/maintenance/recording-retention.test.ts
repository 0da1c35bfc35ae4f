/** Recordings end with time, with their blobs, and never before their session's 31 days. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import { purgeAt } from '../../support/core/retention.ts';
import { type Bench, ENGINES, openBench, T0 } from '../store/engines.ts';

const KEPT_MS = 31 * 86_400_000;
const SESSION_MAX_MS = 6 * 3_600_000;

/** A session with one part of a recording; returns the blob. */
async function record(bench: Bench, projectId: string, isEnded: boolean): Promise<string> {
  const { store } = bench;
  await store.createSession({
    id: newId(),
    projectId,
    region: 'us-west-2',
    contextId: null,
    extensionId: null,
    keepAlive: false,
    params: '{}',
    timeoutMs: undefined,
    userMetadata: null,
    at: T0,
    waitUntil: T0 + 60_000,
  });
  const { leaseId } = must((await bench.lease('session', 1, T0))[0], 'a session to lease');
  await store.startSession({ leaseId, startedAt: T0, at: T0 });
  const blobId = newId();
  const stored = { kind: 'RECORDING', size: 1, sha256: '', createdAt: T0 } as const;
  const part = { number: 0, startMs: 0, endMs: 0, blob: { id: blobId, projectId, ...stored } };
  await store.addRecording({
    leaseId,
    pageId: 0,
    parts: [part],
    startMs: 0,
    endMs: 0,
    url: '',
    complete: true,
    quota: { kinds: ['RECORDING'], maxBytes: 1_000 },
    endedAfter: 0,
    at: T0,
  });
  const end = { status: 'COMPLETED', reason: '', proxyBytes: 0, at: T0 } as const;
  if (isEnded) await store.completeSession({ leaseId, ...end });
  return blobId;
}

for (const engine of ENGINES) {
  const test = suite(`core/recording-retention/${engine.name}`);

  test('an old recording is removed with its blob, one of a running session stays', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p', 5);
    const ended = await record(bench, projectId, true);
    const running = await record(bench, projectId, false);
    const removed: string[] = [];
    const remove = async (id: string) => void removed.push(id);
    let at = T0 + KEPT_MS + SESSION_MAX_MS;
    const clean = () => purgeAt(at, ['recordings'], { store, remove });
    await clean();
    assert.equal(removed, []);
    at += 1;
    await clean();
    assert.equal(removed, [ended]);
    assert.equal(await store.knownBlobs([ended, running]), [running]);
    await clean();
    assert.equal(removed, [ended]);
  });

  test('a blob that a recording names is in use', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p', 5);
    const blobId = await record(bench, projectId, true);
    const unused = await bench.store.removeUnusedBlobs({ before: T0 + 1e9, max: 10 });
    assert.not(unused.includes(blobId));
  });

  test.run();
}
