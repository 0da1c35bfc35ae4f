import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { limitCpu } from '../../../proto/common/cpu-clock.ts';

const test = suite('proto/common/cpu-clock');

async function threadOf(code: string): Promise<Worker> {
  const worker = new Worker(code, { eval: true });
  await once(worker, 'online');
  return worker;
}

function limitedBy(worker: Worker, maxMs: number) {
  const { promise: over, resolve } = Promise.withResolvers<boolean>();
  const limit = limitCpu(worker, maxMs, () => resolve(true));
  return { over, [Symbol.dispose]: () => limit[Symbol.dispose]() };
}

test('a thread that only waits stays within its limit', async () => {
  await using waiting = await threadOf('setInterval(() => {}, 1000)');
  await using busy = await threadOf('for (;;);');
  let isOver = false;
  using _ = limitCpu(waiting, 100, () => {
    isOver = true;
  });
  using longer = limitedBy(busy, 400);
  await longer.over;
  assert.is(isOver, false);
});

for (const [name, code] of [
  ['a loop', 'for (;;);'],
  ['a pattern that backtracks', '/^(a+)+$/.test("a".repeat(60) + "b")'],
] as const) {
  test(`${name} exceeds the limit`, async () => {
    await using worker = await threadOf(code);
    using limit = limitedBy(worker, 100);
    assert.is(await limit.over, true);
  });
}

test('one built-in call that does not return exceeds the limit', async () => {
  const code = `
    const count = new Int32Array(new SharedArrayBuffer(4));
    Atomics.wait(count, 0, 0, 120_000);`;
  await using worker = await threadOf(code);
  using limit = limitedBy(worker, 50);
  assert.is(await limit.over, true);
});

test('a disposed limit ends no thread', async () => {
  await using worker = await threadOf('for (;;);');
  let isOver = false;
  limitCpu(worker, 50, () => {
    isOver = true;
  })[Symbol.dispose]();
  using other = limitedBy(worker, 300);
  await other.over;
  assert.is(isOver, false);
});

test.run();
