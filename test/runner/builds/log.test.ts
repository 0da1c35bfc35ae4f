/** The log of a build: its line numbers have no gaps. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../proto/common/log.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { openBuildLog } from '../../../runner/builds/log.ts';
import type { Lease } from '../../../runner/leases/lease.ts';

const log = suite('runner/builds/log');

const silent = openLog({ role: 'test', level: 'silent' });
const never = new AbortController().signal;

function opened(appendLogs: Lease['appendLogs']) {
  const lease = { appendLogs, pauseOf: (_id: string, ms: number) => ms };
  return openBuildLog({ lease, id: 'b', now: () => 7, log: silent });
}

log('lines are numbered in order, and a line break in a message starts another', async () => {
  const got: [number, string[]][] = [];
  const lines = opened(async (first, batch) => {
    got.push([first, batch.map(({ level, message }) => `${level} ${message}`)]);
  });
  lines.line('info', 'one\r\ntwo');
  lines.line('error', 'three');
  await lines.flush(never);
  assert.equal(got, [[0, ['info one', 'info two', 'error three']]]);
});

log('a failed batch is sent again with the same numbers', async () => {
  const got: [number, number][] = [];
  const lines = opened(async (first, batch) => {
    got.push([first, batch.length]);
    if (got.length === 1) throw new Fault('CORE_UNAVAILABLE', 'core is away');
  });
  lines.line('info', 'one');
  await lines.flush(never);
  assert.equal(got, [
    [0, 1],
    [0, 1],
  ]);
});

log('a core that refuses or is unreachable until the deadline does not block a build', async () => {
  let calls = 0;
  const refused = opened(async () => {
    calls += 1;
    throw new Error('broken');
  });
  refused.line('info', 'one');
  await refused.flush(never);
  assert.is(calls, 1);
  const deadline = new AbortController();
  const away = opened(async () => {
    calls += 1;
    setImmediate(() => deadline.abort());
    throw new Fault('CORE_UNAVAILABLE', 'core is away');
  });
  away.line('info', 'one');
  await away.flush(deadline.signal);
  assert.is(calls, 2);
});

log(
  'a batch has at most 1,000 lines, a log 10,000 and a marker, a line 4,096 characters',
  async () => {
    const batches: number[] = [];
    let last = '';
    let longest = 0;
    const lines = opened(async (_first, batch) => {
      batches.push(batch.length);
      last = batch.at(-1)?.message ?? '';
      longest = Math.max(longest, ...batch.map(({ message }) => message.length));
    });
    lines.line('log', 'x'.repeat(5_000));
    for (let at = 0; at < 10_500; at++) lines.line('log', 'line');
    await lines.flush(never);
    assert.is(Math.max(...batches), 1_000);
    assert.is(
      batches.reduce((sum, one) => sum + one),
      10_001,
    );
    assert.match(last, 'the log is too long');
    assert.is(longest, 4_096);
  },
);

log('long lines end a log at 1 MiB of text, with the same marker', async () => {
  const messages: string[] = [];
  const lines = opened(async (_first, batch) => {
    messages.push(...batch.map(({ message }) => message));
  });
  for (let at = 0; at < 600; at++) lines.line('log', 'é'.repeat(1_024));
  await lines.flush(never);
  assert.is(messages.length, 513, '512 lines of 2 KiB, and the marker');
  assert.is(messages.at(-1), 'the log is too long: the rest is dropped');
});

log.run();
