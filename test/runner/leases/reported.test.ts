/** Parts of logs: sent with renewals, again when core gave no answer, and each with its answer. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../proto/common/log.ts';
import type { LogAnswer, ReportRunnerRequest } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Entry } from '../../../runner/leases/entries.ts';
import type { Sending } from '../../../runner/leases/reported.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { localLeases } from '../../support/runner/leases.ts';

const test = suite('runner/leases/reported');
const log = openLog({ role: 'test', level: 'silent' });
const never = new AbortController().signal;
const STORED: LogAnswer = { full: false, reason: '', message: '' };
/** No renewal is due while a test runs. */
const LEASE_MS = 3_600_000;

const linesOf = (leaseId: string, first = 0): Entry => ({
  kind: 'lines',
  lines: { leaseId, first, lines: [{ message: 'a', timestamp: 1, level: 'log' }] },
});
const chunkOf = (leaseId: string, bytes: number): Entry => ({
  kind: 'chunk',
  chunk: { leaseId, number: 0, entries: Buffer.alloc(bytes), count: 1, size: bytes },
});

const recordingOf = (leaseId: string): Entry => {
  const recording = { leaseId, pageId: 0, url: '', startMs: 0, endMs: 0, parts: [] };
  return { kind: 'recording', recording: { ...recording, complete: false } };
};

type Given = { readIds?: string[]; now?: () => number; leaseMs?: number };

/** `answer`: to each entry; throws when core gives no answer. */
function openScene(
  answer: (report: ReportRunnerRequest) => LogAnswer | undefined,
  given: Given = {},
) {
  const over = new AbortController();
  const reports: ReportRunnerRequest[] = [];
  const { readIds = [], now = () => 0, leaseMs = LEASE_MS } = given;
  const reportRunner = async (report: ReportRunnerRequest) => {
    reports.push(report);
    const one = answer(report) ?? STORED;
    const { chunks = [], lines = [], recordings = [] } = report.entries ?? {};
    const answers = {
      chunks: chunks.map(() => one),
      lines: lines.map(() => one),
      recordings: recordings.map(() => one),
    };
    return { leaseIds: report.leaseIds, answers, readIds };
  };
  const leases = localLeases({
    clients: { runners: { reportRunner } },
    call: {},
    runner: { runnerId: 'r', instanceId: 'i' },
    log,
    leaseMs,
    now,
    onSuperseded: () => assert.unreachable(),
    stopped: never,
    signal: over.signal,
  });
  return {
    leases,
    reports,
    append: (entry: Entry, { isUrgent = true, signal = never }: Partial<Sending> = {}) =>
      leases.hold('own').append(entry, { isUrgent, signal }),
    /** With the next report, after that time, or when `hurry` aborts. */
    appendLater: (entry: Entry, ms: number, hurry = never) =>
      leases.hold('own').append(entry, { isUrgent: false, signal: never, patience: { ms, hurry } }),
    async [Symbol.asyncDispose]() {
      over.abort();
      await leases.renewing;
    },
  };
}

const idsOf = ({ entries }: ReportRunnerRequest) => entries?.lines.map(({ leaseId }) => leaseId);

test('entries of several logs that arrive together are one report', async () => {
  await using scene = openScene(() => undefined);
  const sent = ['a', 'b', 'c'].map((id) => scene.append(linesOf(id), { isUrgent: false }));
  assert.equal(await Promise.all(sent), [false, false, false]);
  assert.equal(scene.reports.map(idsOf), [['a', 'b', 'c']]);
});

test('an entry without an answer is sent again, and stored once by its number', async () => {
  let calls = 0;
  await using scene = openScene(() => {
    calls += 1;
    if (calls === 1) throw new Fault('OUTCOME_UNKNOWN', 'the commit failed');
    return undefined;
  });
  assert.is(await scene.append(linesOf('a', 7)), false);
  const firsts = scene.reports.map(({ entries }) => entries?.lines[0]?.first);
  assert.equal(firsts, [7, 7]);
});

test('an entry is refused with the reason of its own answer', async () => {
  await using scene = openScene(() => ({ full: false, reason: 'LEASE_LOST', message: 'lost' }));
  const { reason, message } = await faultOf(scene.append(linesOf('a')));
  assert.equal([reason, message], ['LEASE_LOST', 'lost']);
});

test('a full log is reported to its sender', async () => {
  await using scene = openScene(() => ({ ...STORED, full: true }));
  assert.is(await scene.append(chunkOf('a', 10)), true);
});

test('a report has 2 MiB of entries at most, and the rest follows at once', async () => {
  await using scene = openScene(() => undefined);
  const sent = Array.from({ length: 5 }, (_, n) =>
    scene.append(chunkOf(`${n}`, 900 << 10), { isUrgent: false }),
  );
  await Promise.all(sent);
  assert.equal(
    scene.reports.map(({ entries }) => entries?.chunks.length),
    [2, 2, 1],
  );
});

test('a report of entries renews the leases, unless they were renewed just now', async () => {
  let at = 0;
  await using scene = openScene(() => undefined, { now: () => at });
  const held = scene.leases.hold('held');
  scene.leases.acknowledge(['held']);
  await held.acknowledged;
  await scene.append(linesOf('held'));
  assert.equal(scene.reports.at(-1)?.leaseIds, [], 'it was renewed just now');
  at = LEASE_MS / 6;
  await scene.append(linesOf('held', 1));
  assert.equal(scene.reports.at(-1)?.leaseIds, ['held']);
});

test('an entry that may wait is sent with the next report, which it does not delay', async () => {
  await using scene = openScene(() => undefined);
  const later = scene.appendLater(recordingOf('a'), LEASE_MS);
  await scene.append(linesOf('b'), { isUrgent: false });
  assert.is(await later, false);
  const [only, ...others] = scene.reports;
  assert.equal([only?.entries?.recordings.map(({ leaseId }) => leaseId), others], [['a'], []]);
});

test('an entry that may wait is sent after its time, and when it must hurry', async () => {
  await using scene = openScene(() => undefined);
  assert.is(await scene.appendLater(recordingOf('a'), 1), false);
  const hurry = new AbortController();
  const waiting = scene.appendLater(recordingOf('b'), LEASE_MS, hurry.signal);
  hurry.abort();
  assert.is(await waiting, false);
  assert.is(await scene.appendLater(recordingOf('c'), LEASE_MS, hurry.signal), false);
  assert.is(scene.reports.length, 3);
});

test('a recording is refused with the reason of its own answer', async () => {
  const full = { full: false, reason: 'QUOTA_EXCEEDED', message: 'used up' };
  await using scene = openScene(() => full);
  const { reason, message } = await faultOf(scene.append(recordingOf('a')));
  assert.equal([reason, message], ['QUOTA_EXCEEDED', 'used up']);
});

test('an entry whose sender waits no more is not sent', async () => {
  await using scene = openScene(() => undefined);
  const leaving = new AbortController();
  const sent = scene.append(linesOf('a'), { isUrgent: false, signal: leaving.signal });
  leaving.abort(new Error('the deadline is over'));
  assert.match(String(await sent.catch((error: unknown) => error)), /the deadline is over/);
  await scene.append(linesOf('b'));
  assert.equal(scene.reports.map(idsOf), [['b']]);
});

test('the pause of a log grows with the held leases, but not while it is read', async () => {
  await using scene = openScene(() => undefined, { readIds: ['read'], leaseMs: 15_000 });
  const holds = Array.from({ length: 3 }, (_, n) => scene.leases.hold(`${n}`));
  const [first] = holds;
  assert.is(first?.pauseOf('any', 700), 700, 'three leases report as one');
  holds.push(...Array.from({ length: 97 }, (_, n) => scene.leases.hold(`more ${n}`)));
  assert.is(first?.waitOf('any'), 7_500, 'longer than a tick');
  const pause = first?.pauseOf('any', 700) ?? 0;
  assert.ok(pause > 0 && pause <= 5_000, 'at most a third of a lease');
  await scene.append(linesOf('a'));
  await until(() => first?.pauseOf('read', 700) === 700);
  assert.is(first?.waitOf('read'), 0);
});

test.run();
