/**
 * Recordings in the reports of runners, in every engine of the store: the rows of blobs and of
 * parts are written in the report's transaction, once, or not at all.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import type { NewPart, NewRecording } from '../../../core/store/types/recordings.ts';
import { must } from '../../../proto/common/must.ts';
import { type Bench, ENGINES, HOLDER, LEASE_MS, openBench, T0 } from './engines.ts';

const MIB = 1 << 20;
const LATE_MS = 600_000;
const END = { status: 'COMPLETED', reason: 'over', proxyBytes: 0 } as const;

type Session = { id: string; leaseId: string; projectId: string };

/** Created, leased and started. */
async function run({ store, lease }: Bench, projectId: string): Promise<Session> {
  const id = newId();
  const none = { contextId: null, extensionId: null, userMetadata: null, timeoutMs: undefined };
  const wanted = { ...none, id, projectId, region: 'us-west-2', keepAlive: false, params: '{}' };
  await store.createSession({ ...wanted, at: T0, waitUntil: T0 + 60_000 });
  const { leaseId } = must((await lease('session', 1, T0))[0], 'a session to lease');
  await store.startSession({ leaseId, startedAt: T0, at: T0 });
  return { id, leaseId, projectId };
}

function partOf({ projectId }: { projectId: string }, number: number, size = 10): NewPart {
  const blob = { id: newId(), projectId, kind: 'RECORDING', size, sha256: 'aa' } as const;
  const times = { startMs: number * 10, endMs: (number + 1) * 10 };
  return { number, ...times, blob: { ...blob, createdAt: T0 } };
}

function pageOf({ leaseId }: { leaseId: string }, more: Partial<NewRecording>): NewRecording {
  const usual = { pageId: 0, startMs: 0, endMs: 0, url: 'a', parts: [], complete: false };
  return { leaseId, ...usual, ...more };
}

/** The answers to the recordings of a report. */
async function report(
  { store }: Bench,
  recordings: NewRecording[],
  { at = T0, maxBytes = 100 * MIB } = {},
) {
  const renewal = { ...HOLDER, leaseIds: [], leaseMs: LEASE_MS, at };
  const logQuota = { kinds: ['SESSION_LOG'], maxBytes: 100 } as const;
  const ofLogs = {
    chunks: [],
    lines: [],
    chunksMaxBytes: 100,
    logQuota,
    lineLimits: { maxBytes: 100, linesMax: 100, marker: '' },
  };
  const quota = { kinds: ['RECORDING'], maxBytes } as const;
  const recordingLimits = { quota, endedAfter: at - LATE_MS };
  const wanted = { ...renewal, ...ofLogs, recordings, recordingLimits };
  return (await store.reportRunner(wanted)).recordings;
}

/** Numbers of the stored parts of a page, and the bytes that count for its project. */
async function storedOf({ store }: Bench, { id: sessionId, projectId }: Session, pageId = 0) {
  const parts = await store.listRecordingParts({ sessionId, projectId, pageId });
  const { stored } = await store.projectStorage(projectId);
  const bytes = stored.find(({ kind }) => kind === 'RECORDING')?.bytes ?? 0;
  return { numbers: parts.map(({ number }) => number), bytes };
}

for (const engine of ENGINES) {
  const test = suite(`store-recordings/${engine.name}`);

  test('a report writes blobs and parts, and a repeated one changes nothing', async () => {
    await using bench = await openBench(engine);
    const session = await run(bench, await bench.project('p'));
    const parts = [partOf(session, 0), partOf(session, 1)];
    const started = pageOf(session, { endMs: 5 });
    const first = pageOf(session, { parts, endMs: 20 });
    for (let n = 0; n < 2; n += 1) {
      assert.equal(await report(bench, [started, first]), ['added', 'added']);
    }
    assert.equal(await storedOf(bench, session), { numbers: [0, 1], bytes: 20 });
    const last = pageOf(session, { parts: [partOf(session, 2)], endMs: 30, complete: true });
    for (let n = 0; n < 2; n += 1) assert.equal(await report(bench, [last]), ['added']);
    assert.equal(await storedOf(bench, session), { numbers: [0, 1, 2], bytes: 30 });
    const [page] = await bench.store.listRecordings(session.id);
    assert.equal([page?.startMs, page?.endMs, page?.segments], [0, 30, 2]);
    const unused = await bench.store.removeUnusedBlobs({ before: T0 + 1e9, max: 10 });
    assert.not(parts.some(({ blob }) => unused.includes(blob.id)));
  });

  test('what is refused stores nothing, and the other entries are stored', async () => {
    await using bench = await openBench(engine);
    const session = await run(bench, await bench.project('p'));
    const other = await run(bench, await bench.project('other'));
    const own = partOf(session, 0);
    assert.equal(await report(bench, [pageOf(session, { parts: [own] })]), ['added']);
    const unseen = partOf(session, 1);
    const twice = partOf(session, 2);
    const archive = { ...twice, blob: { ...twice.blob, kind: 'BUILD_ARCHIVE' as const } };
    const answers = await report(bench, [
      pageOf({ leaseId: 'no lease' }, { parts: [unseen] }),
      pageOf(other, { parts: [unseen] }),
      pageOf(session, { pageId: 1, parts: [unseen, own] }),
      pageOf(session, { parts: [{ ...own, number: 1 }] }),
      pageOf(session, { parts: [twice, { ...twice, number: 3 }] }),
      pageOf(session, { parts: [archive] }),
      pageOf(session, { parts: [partOf(session, 4)] }),
    ]);
    const refused = Array(5).fill('refused');
    assert.equal(answers, ['lost', ...refused, 'added']);
    assert.equal(await storedOf(bench, session), { numbers: [0, 4], bytes: 20 });
    assert.equal(await storedOf(bench, other), { numbers: [], bytes: 0 });
    assert.equal(await bench.store.knownBlobs([unseen.blob.id, twice.blob.id]), []);
    assert.is((await bench.store.listRecordings(session.id)).length, 1);
  });

  test('parts of an ended session are accepted for a time, under its lease', async () => {
    await using bench = await openBench(engine);
    const projectId = await bench.project('p');
    const events = await bench.listen(projectId, ['sessions.recording.ready']);
    const [session, never] = [await run(bench, projectId), await run(bench, projectId)];
    assert.equal(await report(bench, [pageOf(session, {})]), ['added']);
    for (const { leaseId } of [session, never]) {
      await bench.store.completeSession({ leaseId, ...END, at: T0 });
    }
    assert.equal(await events(), []);
    const late = pageOf(session, { parts: [partOf(session, 0)] });
    assert.equal(await report(bench, [late], { at: T0 + LATE_MS }), ['lost']);
    assert.equal(await report(bench, [late], { at: T0 + LATE_MS - 1 }), ['added']);
    assert.equal(await report(bench, [pageOf(never, {})]), ['lost'], 'it recorded nothing before');
    const end = pageOf(session, { complete: true });
    for (let n = 0; n < 2; n += 1) assert.equal(await report(bench, [end]), ['added']);
    assert.equal(await events(), ['sessions.recording.ready']);
    assert.equal(await storedOf(bench, session), { numbers: [0], bytes: 10 });
  });

  test('a full quota refuses new blobs and new pages, and no repetition', async () => {
    await using bench = await openBench(engine);
    const session = await run(bench, await bench.project('p'));
    const first = pageOf(session, { parts: [partOf(session, 0, MIB)] });
    const second = pageOf(session, { parts: [partOf(session, 1, 1)] });
    const one = { maxBytes: MIB };
    assert.equal(await report(bench, [first, second, first], one), [
      'added',
      { fullMib: 1 },
      'added',
    ]);
    const [page, end] = [pageOf(session, { pageId: 1 }), pageOf(session, { complete: true })];
    assert.equal(await report(bench, [page, end], one), [{ fullMib: 1 }, 'added']);
    assert.equal(await storedOf(bench, session), { numbers: [0], bytes: MIB });
    const quotas = [{ quota: 'recordingMib', value: 2 } as const];
    const limits = { sessions: undefined, invocations: undefined, queue: undefined, quotas };
    await bench.store.setLimits({ project: session.projectId, limits, at: T0 });
    assert.equal(await report(bench, [second, page], one), ['added', 'added'], 'its own quota');
  });

  test('a session that ends with the last part of its recording makes one event', async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const events = await bench.listen(projectId, ['sessions.recording.ready']);
    for (let round = 0; round < 20; round += 1) {
      const session = await run(bench, projectId);
      await report(bench, [pageOf(session, {})]);
      const last = pageOf(session, { parts: [partOf(session, 0)], complete: true });
      const ended = store.completeSession({ leaseId: session.leaseId, ...END, at: T0 });
      assert.equal(await report(bench, [last]), ['added']);
      assert.ok(await ended);
      assert.equal(await events(), ['sessions.recording.ready'], `round ${round}`);
    }
  });

  test.run();
}
