/** The log of a build: numbers without gaps, whatever core does. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Append, openBuildLog } from '../../../runner/builds/log.ts';

const log = suite('runner/builds/log');

function opened(append: Append) {
  const errors: unknown[] = [];
  return {
    errors,
    log: openBuildLog({ append, now: () => 7, onError: (error) => errors.push(error) }),
  };
}

log('lines are numbered in order, a message with line breaks is several', async () => {
  const got: [number, string[]][] = [];
  const { log: lines } = opened(async (first, batch) => {
    got.push([first, batch.map(({ level, message }) => `${level} ${message}`)]);
  });
  lines.line('info', 'one\r\ntwo');
  lines.line('error', 'three');
  await lines.close();
  assert.equal(got, [[0, ['info one', 'info two', 'error three']]]);
});

log('a batch that fails is sent again with the same numbers', async () => {
  const got: [number, number][] = [];
  const { log: lines, errors } = opened(async (first, batch) => {
    got.push([first, batch.length]);
    if (got.length === 1) throw new Error('core is away');
  });
  lines.line('info', 'one');
  await lines.close();
  assert.equal(got, [
    [0, 1],
    [0, 1],
  ]);
  assert.is(errors.length, 1);
});

log('a core that never takes a line does not hold the build', async () => {
  const { log: lines, errors } = opened(async () => {
    throw new Error('core is away');
  });
  lines.line('info', 'one');
  await lines.close();
  assert.is(errors.length, 3);
});

log(
  'a batch has at most 1,000 lines, a log 10,000 and a marker, a line 4,096 characters',
  async () => {
    const batches: number[] = [];
    let last = '';
    let longest = 0;
    const { log: lines } = opened(async (_first, batch) => {
      batches.push(batch.length);
      last = batch.at(-1)?.message ?? '';
      longest = Math.max(longest, ...batch.map(({ message }) => message.length));
    });
    lines.line('log', 'x'.repeat(5_000));
    for (let at = 0; at < 10_500; at++) lines.line('log', 'line');
    await lines.close();
    assert.is(Math.max(...batches), 1_000);
    assert.is(
      batches.reduce((sum, one) => sum + one),
      10_001,
    );
    assert.match(last, 'the log is too long');
    assert.is(longest, 4_096);
  },
);

log.run();
