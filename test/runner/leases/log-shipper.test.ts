/** The log of a lease, while core restarts, refuses it or does not answer. */
import { once } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { LogLines } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { openLineLog } from '../../../runner/leases/log-shipper.ts';
import { testLease, testRunner } from '../../support/runner/lease.ts';

const test = suite('runner/leases/log-shipper');
const line = { level: 'log', message: 'a', timestamp: 1 } as const;
type Append = (request: LogLines, signal: AbortSignal) => Promise<void>;

function logTo(append: Append) {
  const lease = testLease('l', {
    async append(entry, { signal }) {
      if (entry.kind !== 'lines') throw new Error('not lines');
      await append(entry.lines, signal);
      return false;
    },
  });
  return openLineLog({ lease, id: 'i', log: testRunner().log, delayMs: 100 });
}

const never = new AbortController().signal;

test('lines are numbered, and a batch is sent again after core was unreachable', async () => {
  const got: [number, number][] = [];
  let away = 1;
  const lines = logTo(async ({ first, lines: sent }) => {
    if (away-- > 0) throw new Fault('CORE_UNAVAILABLE', 'away');
    got.push([first, sent.length]);
  });
  lines.add(Array(1_500).fill(line));
  await lines.flush(never);
  assert.equal(got, [
    [0, 1_000],
    [1_000, 500],
  ]);
});

test('a batch that core may not have stored is sent again with its numbers', async () => {
  const got: number[] = [];
  const lines = logTo(async ({ first }) => {
    got.push(first);
    if (got.length === 1) throw new Fault('OUTCOME_UNKNOWN', 'the commit failed');
  });
  lines.add([line]);
  await lines.flush(never);
  lines.add([line]);
  await lines.flush(never);
  assert.equal(got, [0, 0, 1]);
});

test('a refused batch is not sent again', async () => {
  let calls = 0;
  const lines = logTo(async () => {
    calls += 1;
    throw new Fault('LEASE_LOST', 'lost');
  });
  lines.add([line]);
  await lines.flush(never);
  lines.add([line]);
  await lines.flush(never);
  assert.is(calls, 1);
});

for (const [what, append] of [
  [
    'is away',
    async () => {
      throw new Fault('CORE_UNAVAILABLE', 'away');
    },
  ],
  [
    'never answers',
    (_: LogLines, signal: AbortSignal) =>
      once(signal, 'abort').then(() => Promise.reject(signal.reason)),
  ],
] as [string, Append][]) {
  test(`with a core that ${what}, a batch in progress ends with the deadline`, async () => {
    const begun = Promise.withResolvers<void>();
    const lines = logTo((request, signal) => {
      begun.resolve();
      return append(request, signal);
    });
    lines.add([line]);
    await begun.promise; // sent by the timer, before the flush
    const deadline = new AbortController();
    const flushed = lines.flush(deadline.signal);
    deadline.abort();
    await flushed;
  });
}

test('lines that are added while a batch is sent follow in the next one', async () => {
  const got: [number, number][] = [];
  const lines = logTo(async ({ first, lines: sent }) => {
    got.push([first, sent.length]);
    if (first === 0) lines.add([line, line]);
  });
  lines.add([line]);
  await lines.flush(never);
  assert.equal(got, [
    [0, 1],
    [1, 2],
  ]);
});

test.run();
