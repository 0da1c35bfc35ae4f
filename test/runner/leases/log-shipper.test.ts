/** The log of a run on its way to a core that comes, goes, refuses or never answers. */
import { once } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../proto/common/log.ts';
import type { AppendLogsRequest } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { MARKER, RUN_MAX_BYTES } from '../../../runner/host/limits.ts';
import { openRunLog } from '../../../runner/leases/log-shipper.ts';

const test = suite('runner/leases/log-shipper');
const line = { level: 'log', message: 'a', timestamp: 1 } as const;
type Append = (request: AppendLogsRequest, signal: AbortSignal) => Promise<void>;

function logTo(append: Append) {
  const runners = {
    async appendLogs(request: AppendLogsRequest, { signal }: { signal: AbortSignal }) {
      await append(request, signal);
      return {};
    },
  } as unknown as Clients['runners'];
  const log = openLog({ role: 'test', level: 'silent' });
  return openRunLog({ leaseId: 'l', clients: { runners }, call: {}, log });
}

const never = new AbortController().signal;

test('lines are numbered on, and what a core that was away missed is sent again', async () => {
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

test('a core that refuses is not asked again', async () => {
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
    (_: AppendLogsRequest, signal: AbortSignal) =>
      once(signal, 'abort').then(() => Promise.reject(signal.reason)),
  ],
] as [string, Append][]) {
  test(`with a core that ${what}, a batch under way ends with the patience`, async () => {
    const begun = Promise.withResolvers<void>();
    const lines = logTo((request, signal) => {
      begun.resolve();
      return append(request, signal);
    });
    lines.add([line]);
    await begun.promise; // sent by its own timer, before anybody waits for the end
    const patience = new AbortController();
    const flushed = lines.flush(patience.signal);
    patience.abort();
    await flushed;
  });
}

test('what passes the limit is cut with one marker', async () => {
  const got: string[] = [];
  const lines = logTo(async ({ lines: sent }) => {
    got.push(...sent.map(({ message }) => message));
  });
  lines.add(Array(40).fill({ ...line, message: 'x'.repeat(RUN_MAX_BYTES / 32) }));
  await lines.flush(never);
  assert.is(got.filter((message) => message === MARKER).length, 1);
  assert.is(got.at(-1), MARKER);
  assert.is(got.length, 32);
});

test.run();
