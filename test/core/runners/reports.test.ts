/** Reports of runners: each entry has its answer, and a repeated report stores nothing twice. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import type { LogEntries } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { faultOf } from '../../support/fault.ts';
import { type Booted, boot, HOLDER } from '../boot.ts';

const test = suite('core/runners/reports');
const LINE = { message: 'one', timestamp: 1_700_000_000_000, level: 'log' };

const chunkOf = (leaseId: string, number: number, more: { count?: number } = {}) => ({
  leaseId,
  number,
  entries: Buffer.from(`chunk ${number}`),
  count: 1,
  size: 8,
  ...more,
});

/** Two running invocations of the project. */
async function openScene() {
  const app = await boot();
  const functionId = await app.publish({ name: 'f' });
  const [first, second] = [await app.invoke(functionId), await app.invoke(functionId)];
  const leases = [...(await app.lease('INVOCATION')), ...(await app.lease('INVOCATION'))];
  const leaseIds = leases.map(({ leaseId }) => leaseId);
  await app.clients.runners.reportRunner({ ...HOLDER, leaseIds }, app.asRunner);
  return { app, first, second, leaseIds };
}

const report = (
  { clients, asRunner }: Booted,
  given: Partial<LogEntries> | undefined,
  leaseIds: string[] = [],
) => {
  const entries = given && { chunks: [], lines: [], recordings: [], ...given };
  return clients.runners.reportRunner({ ...HOLDER, leaseIds, entries }, asRunner);
};

const linesOf = async ({ clients, asProject }: Booted, id: string) =>
  (await clients.invocations.listInvocationLogs({ id }, asProject)).logs.length;

test('a report renews, and stores the parts of several logs', async () => {
  const { app, first, second, leaseIds } = await openScene();
  await using _app = app;
  const [a = '', b = ''] = leaseIds;
  const lines = leaseIds.map((leaseId) => ({ leaseId, first: 0, lines: [LINE, LINE] }));
  const chunks = [chunkOf(a, 0), chunkOf(b, 0)];
  const { leaseIds: kept, answers } = await report(app, { chunks, lines }, [a, 'lost', b]);
  assert.equal(kept, leaseIds);
  const stored = { full: false, reason: '', message: '' };
  assert.equal(answers, { chunks: [stored, stored], lines: [stored, stored], recordings: [] });
  assert.equal([await linesOf(app, first.id), await linesOf(app, second.id)], [2, 2]);
});

test('a line with an invalid level or time is refused alone', async () => {
  const { app, first, second, leaseIds } = await openScene();
  await using _app = app;
  const [a = '', b = ''] = leaseIds;
  const good = { leaseId: b, first: 0, lines: [{ ...LINE, timestamp: LINE.timestamp + 0.4 }] };
  const bad = [
    { level: 'x'.repeat(1 << 20) },
    { timestamp: Number.NaN },
    { timestamp: -1 },
    { timestamp: 1e300 },
  ];
  for (const part of bad) {
    const lines = [{ leaseId: a, first: 0, lines: [{ ...LINE, ...part }] }, good];
    const { answers } = await report(app, { lines }, leaseIds);
    assert.equal(
      answers?.lines.map(({ reason }) => reason),
      ['INVALID_FIELD', ''],
    );
  }
  assert.equal([await linesOf(app, first.id), await linesOf(app, second.id)], [0, 1]);
});

test('a repeated report stores nothing twice', async () => {
  const { app, first, leaseIds } = await openScene();
  await using _app = app;
  const [leaseId = ''] = leaseIds;
  const lines = [{ leaseId, first: 0, lines: [LINE] }];
  for (let n = 0; n < 2; n += 1) {
    const { answers } = await report(app, { chunks: [chunkOf(leaseId, 0)], lines });
    assert.is(answers?.chunks[0]?.reason, '');
    assert.is(answers?.lines[0]?.reason, '');
  }
  assert.is(await linesOf(app, first.id), 1);
  const { answers } = await report(app, { chunks: [chunkOf(leaseId, 1)], lines: [] });
  assert.is(answers?.chunks[0]?.reason, '', 'the next number is 1');
});

test('a lost lease, a gap and an invalid entry do not fail the others', async () => {
  const { app, first, leaseIds } = await openScene();
  await using _app = app;
  const [leaseId = ''] = leaseIds;
  const { answers } = await report(app, {
    chunks: [
      chunkOf('no lease', 0),
      chunkOf(leaseId, 5),
      chunkOf(leaseId, 0, { count: 10_001 }),
      chunkOf(leaseId, 0),
    ],
    lines: [
      { leaseId: 'no lease', first: 0, lines: [LINE] },
      { leaseId, first: 7, lines: [LINE] },
      { leaseId, first: 0, lines: Array(1_001).fill(LINE) },
      { leaseId, first: 0, lines: [LINE] },
    ],
  });
  const reasons = ['LEASE_LOST', 'INVALID_FIELD', 'INVALID_FIELD', ''];
  assert.equal(
    answers?.chunks.map(({ reason }) => reason),
    reasons,
  );
  assert.equal(
    answers?.lines.map(({ reason }) => reason),
    reasons,
  );
  assert.match(must(answers?.chunks[2], 'an answer').message, '`count` must be at most 10000');
  assert.is(await linesOf(app, first.id), 1);
});

test('a report with too many entries is refused, and stores nothing', async () => {
  const { app, first, leaseIds } = await openScene();
  await using _app = app;
  const [leaseId = ''] = leaseIds;
  const lines = Array.from({ length: 513 }, () => ({ leaseId, first: 0, lines: [LINE] }));
  const fault = await faultOf(report(app, { chunks: [], lines }));
  assert.equal([fault.reason, fault.facts['field']], ['INVALID_FIELD', 'lines']);
  assert.is(await linesOf(app, first.id), 0);
});

test('a report of a superseded instance stores nothing', async () => {
  const { app, first, leaseIds } = await openScene();
  await using _app = app;
  const [leaseId = ''] = leaseIds;
  const next = { ...HOLDER, instanceId: 'second' };
  await app.clients.runners.registerRunner(next, app.asRunner);
  const lines = [{ leaseId, first: 0, lines: [LINE] }];
  const fault = await faultOf(report(app, { chunks: [], lines }));
  assert.is(fault.reason, 'LEASE_LOST');
  assert.is(await linesOf(app, first.id), 0);
});

test('logs that somebody reads are named to the runner for a minute', async () => {
  const { app, first } = await openScene();
  await using _app = app;
  assert.equal((await report(app, undefined)).readIds, []);
  await app.clients.invocations.listInvocationLogs({ id: first.id }, app.asProject);
  await app.clients.sessions.listSessionLogs({ id: first.sessionId }, app.asProject);
  const { readIds } = await report(app, undefined);
  assert.equal(readIds.toSorted(), [first.id, first.sessionId].toSorted());
  app.clock.advance(60_001);
  assert.equal((await report(app, undefined)).readIds, []);
});

test.run();
