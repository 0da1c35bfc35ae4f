/** The protocol log is sent to core soon, in order, once, completely, in limited chunks. */
import { zstdDecompressSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import type { SessionLogChunk } from '../../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../../../proto/rpc/errors.ts';
import type { Chrome } from '../../../../runner/browser/launch.ts';
import { sessionLogs } from '../../../../runner/sessions/log/log-shipper.ts';
import { until } from '../../../support/poll.ts';
import { testLease, testRunner } from '../../../support/runner/lease.ts';

const test = suite('runner/sessions/log/log-shipper');
const LIMIT_MS = 20_000;

type Answer = { full: boolean } | Error;

/** A log whose core responds as `answerOf` returns; a Chrome without pages. */
async function openBench(answerOf: (call: number) => Answer = () => ({ full: false })) {
  const taken: SessionLogChunk[] = [];
  let calls = 0;
  const lost = new AbortController();
  const lease = testLease('a-lease', {
    lost: lost.signal,
    async append(entry) {
      if (entry.kind !== 'chunk') throw new Error('not a chunk');
      calls += 1;
      const answer = answerOf(calls);
      if (answer instanceof Error) throw answer;
      taken.push(entry.chunk);
      return answer.full;
    },
  });
  const runner = testRunner({ now: () => 5 });
  const logs = sessionLogs('a-session', { runner, lease });
  const { promise: closed } = Promise.withResolvers<void>();
  const none = { targetInfos: [] };
  const pipe = { call: async () => none, onEvent: () => () => undefined, closed };
  const part = await logs.open({ pipe } as unknown as Chrome);
  const session = must(part.recorder, 'a recorder').session(0);
  return {
    logs,
    part,
    taken,
    lost,
    calls: () => calls,
    event: (n: number, more = '') =>
      session.onMessage(Buffer.from(`{"method":"Page.n${n}","params":{"more":"${more}"}}`), n),
    /** What core has, entry by entry. */
    entries: () =>
      taken.flatMap(({ entries }) => {
        const lines = zstdDecompressSync(entries).toString().split('\n');
        return lines.map((line) => JSON.parse(line) as { method: string; sessionId: string });
      }),
  };
}

const named = (count: number): string[] => Array.from({ length: count }, (_, n) => `Page.n${n}`);
const methodsOf = (entries: readonly { method: string }[]) => entries.map(({ method }) => method);

test('entries are sent without a flush, with their count and size', async () => {
  const { event, taken, entries, part } = await openBench();
  event(0);
  event(1);
  await until(() => taken.length > 0, LIMIT_MS);
  const [chunk] = taken;
  assert.is(chunk?.leaseId, 'a-lease');
  assert.is(chunk?.number, 0);
  assert.is(chunk?.count, 2);
  assert.is(chunk?.size, zstdDecompressSync(must(chunk, 'a chunk').entries).length);
  assert.equal(methodsOf(entries()), named(2));
  assert.is(entries()[0]?.sessionId, 'a-session');
  await part.closeLast?.();
  assert.is(taken.length, 1);
});

test('many entries are sent in numbered chunks, in order, before the end', async () => {
  const { event, taken, entries, part } = await openBench();
  for (let n = 0; n < 3_000; n++) event(n, 'x'.repeat(n % 1_000));
  await part.closeLast?.();
  assert.equal(methodsOf(entries()), named(3_000));
  assert.equal(
    taken.map(({ number }) => number),
    taken.map((_, index) => index),
  );
  for (const { count, size } of taken) assert.ok(count <= 500 && size < 1 << 20);
});

test('the end of an empty log sends nothing', async () => {
  const { part, calls } = await openBench();
  await part.closeLast?.();
  assert.is(calls(), 0);
});

test('after an outage core gets the same chunk again, then later entries', async () => {
  const away = new Fault('CORE_UNAVAILABLE', 'core is not there');
  const { event, entries, taken, part, calls } = await openBench((call) =>
    call <= 2 ? away : { full: false },
  );
  event(0);
  await until(() => calls() === 1, LIMIT_MS);
  event(1);
  await until(() => taken.length > 0, LIMIT_MS);
  await part.closeLast?.();
  assert.equal(methodsOf(entries()), named(2));
  assert.equal(
    taken.map(({ number }) => number),
    [0, 1],
  );
});

for (const [what, answer] of [
  ['is full', { full: true }],
  ['is refused', new Fault('LEASE_LOST', 'lost')],
] as const) {
  test(`a log that ${what} sends no more`, async () => {
    const { event, part, calls } = await openBench(() => answer);
    event(0);
    await until(() => calls() > 0, LIMIT_MS);
    event(1);
    await part.closeLast?.();
    assert.is(calls(), 1);
  });
}

test('the log of a lost lease is sent until core refuses it', async () => {
  const { event, part, lost, calls } = await openBench(
    (call) => new Fault(call === 1 ? 'CORE_UNAVAILABLE' : 'LEASE_LOST', 'away, then back'),
  );
  event(0);
  lost.abort();
  await part.closeLast?.();
  assert.is(calls(), 2);
});

test('a warning is an entry, also before the session is open', async () => {
  const { logs, part, entries } = await openBench();
  logs.warn('captchas are not solved here');
  await part.closeLast?.();
  assert.equal(methodsOf(entries()), ['Tabern.warning']);
});

test.run();
