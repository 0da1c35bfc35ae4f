/** Sessions leave with time, with their metadata, when nothing of them is kept any longer. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import { purgeAt } from '../../support/core/retention.ts';
import { type Bench, ENGINES, openBench } from '../store/engines.ts';

const KEPT_MS = 90 * 86_400_000;
/** Ids are made with the machine's clock, so that is when all begins; the sessions run for long. */
const T0 = Date.now();
const RUN_MS = 3 * 3_600_000;
const LABEL = { id: newId(), name: 'L', nameKey: 'l' };
const METADATA = { keys: ['order', 'id'], value: '17' };

/** A session of a user that ran from T0 on, unless it still runs. */
async function run(bench: Bench, projectId: string, isEnded = true) {
  const { store } = bench;
  const { id } = await store.createSession({
    id: newId(),
    projectId,
    region: 'us-west-2',
    contextId: null,
    extensionId: null,
    keepAlive: false,
    params: '{}',
    timeoutMs: undefined,
    userMetadata: JSON.stringify({ order: { id: '17' }, note: 'x' }),
    labels: { wanted: [LABEL], max: 1 },
    at: T0,
    waitUntil: T0 + 60_000,
  });
  const { leaseId } = must((await bench.lease('session', 1, T0))[0], 'a session to lease');
  await store.startSession({ leaseId, startedAt: T0, at: T0 });
  const at = T0 + RUN_MS;
  const end = { status: 'COMPLETED', reason: 'over', proxyBytes: 1_000, at } as const;
  if (isEnded) await store.completeSession({ leaseId, ...end });
  return { id, leaseId };
}

async function idsOf({ store }: Bench, projectId: string, metadata?: typeof METADATA) {
  const wanted = { projectId, status: undefined, metadata, max: 2_000 };
  return (await store.listSessions(wanted)).map(({ id }) => id);
}

const cleanAt = ({ store }: Bench, at: number) => purgeAt(at, ['sessions'], { store });

for (const engine of ENGINES) {
  const test = suite(`core/session-retention/${engine.name}`);

  test('an old session is removed with its metadata, and its usage stays counted', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p');
    const old = await run(bench, projectId);
    const open = await run(bench, projectId, false);
    const at = T0 + RUN_MS + KEPT_MS;
    const used = await bench.store.projectUsage({ id: projectId, at });
    await cleanAt(bench, at);
    assert.equal((await idsOf(bench, projectId)).sort(), [old.id, open.id].sort());
    await cleanAt(bench, at + 1);
    assert.equal(await idsOf(bench, projectId), [open.id]);
    assert.equal(await idsOf(bench, projectId, METADATA), [open.id]);
    assert.equal(await bench.store.projectUsage({ id: projectId, at }), used);
    assert.is(used.proxyBytes, 1_000);
    await cleanAt(bench, at + 1);
    assert.equal(await bench.store.projectUsage({ id: projectId, at }), used, 'counted once');
  });

  test('the rows of a deleted label are removed in batches', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    for (let n = 0; n < 3; n++) await run(bench, projectId);
    assert.is(await store.purgeLabels(9), 0);
    const other = { ...LABEL, id: newId(), nameKey: 'o', projectId, at: T0 };
    assert.ok(await store.deleteLabel({ id: LABEL.id, projectId, at: T0 }));
    assert.is.not(await store.createLabel(other, 1), 'taken', 'a deleted one needs no room');
    const removed: number[] = [];
    do removed.push(await store.purgeLabels(2));
    while (removed.at(-1) === 2);
    assert.equal(removed, [2, 2, 0], 'three sessions, then the label');
    const left = await store.listLabels({ projectId, before: undefined, limit: 9 });
    assert.equal(
      left.map(({ id }) => id),
      [other.id],
    );
  });

  test('a session is kept as long as any of its objects', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const { id, leaseId } = await run(bench, projectId, false);
    const entries = Buffer.from('a chunk');
    const chunk = { leaseId, number: 0, entries, count: 1, size: 9, maxBytes: 99 };
    await store.appendSessionLog({ ...chunk, endedAfter: T0, at: T0 });
    const end = { status: 'ERROR', reason: '', proxyBytes: 0, at: T0 } as const;
    await store.completeSession({ leaseId, ...end });
    const { sessionId } = await bench.accept(projectId, await bench.publish(projectId));
    const [invoked] = await bench.lease('invocation');
    await store.completeInvocation({
      leaseId: must(invoked, 'work').leaseId,
      outcome: { kind: 'success', results: null },
      sessionStartedAt: T0,
      at: T0,
    });
    const late = T0 + 2 * KEPT_MS;
    await cleanAt(bench, late);
    assert.equal((await idsOf(bench, projectId)).sort(), [id, sessionId].sort());
    await store.purgeSessionLogs({ before: late, at: late, max: 9 });
    await cleanAt(bench, late);
    assert.equal(await idsOf(bench, projectId), [sessionId]);
  });

  test('a purge of several batches reads all sessions, those that stay too', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p', 1_000);
    const open = await run(bench, projectId, false);
    for (let batch = 0; batch < 6; batch += 1) {
      await Promise.all(Array.from({ length: 100 }, () => run(bench, projectId)));
    }
    await cleanAt(bench, T0 + 2 * KEPT_MS);
    assert.equal(await idsOf(bench, projectId), [open.id]);
  });

  test.run();
}
