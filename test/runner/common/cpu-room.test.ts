/** Whether there is room, as the kernel's pressure says. */
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { hasCpuRoom, watchOverload, yieldWhile } from '../../../runner/common/cpu-room.ts';
import { until } from '../../support/poll.ts';

const room = suite('runner/common/cpu-room');
const never = new AbortController().signal;

/** A total that grows by so much of the time between two looks. */
function pressure(part: number): () => string {
  let [total, before] = [0, performance.now()];
  return () => {
    const now = performance.now();
    total += part * (now - before) * 1_000;
    before = now;
    return `some avg10=0.00 avg60=0.00 avg300=0.00 total=${Math.round(total)}\nfull total=9\n`;
  };
}

room('there is room when tasks waited for less than a quarter of a look', async () => {
  assert.is(await hasCpuRoom(never, pressure(0.1)), true);
  assert.is(await hasCpuRoom(never, pressure(0.5)), false);
});

room('a kernel that tells nothing has room', async () => {
  assert.is(await hasCpuRoom(never, () => ''), true);
});

room('a signal ends the look', async () => {
  const startedAt = performance.now();
  await hasCpuRoom(AbortSignal.abort(), pressure(1));
  assert.ok(performance.now() - startedAt < 250);
});

room('processors are overloaded when tasks waited for more than half of the time', async () => {
  let looks = 0;
  const counted = (read: () => string) => () => {
    looks += 1;
    return read();
  };
  const much = watchOverload(counted(pressure(0.7)));
  assert.equal([much(), looks], [false, 1], 'before there was a look');
  const little = watchOverload(pressure(0.3));
  const unknown = watchOverload(() => '');
  await sleep(300);
  assert.equal([much(), little(), unknown()], [true, false, false]);
  assert.is(looks, 2);
  for (let call = 0; call < 1_000; call += 1) much();
  assert.ok(looks < 20, `${looks} looks of 1,000 calls`);
});

room('processors with room again are not overloaded any more', async () => {
  let part = 0.9;
  let [total, before] = [0, performance.now()];
  const isOverloaded = watchOverload(() => {
    const now = performance.now();
    total += part * (now - before) * 1_000;
    before = now;
    return `some avg10=0.00 avg60=0.00 avg300=0.00 total=${Math.round(total)}`;
  });
  await until(isOverloaded);
  part = 0;
  await until(() => !isOverloaded());
});

room(
  'work yields for its time, and regains that slowly, whether there was room or not',
  async () => {
    let isOverloaded = true;
    const waits: number[] = [];
    const yields = yieldWhile(() => isOverloaded, 600);
    const timed = async (): Promise<void> => {
      const startedAt = performance.now();
      await yields(never);
      waits.push(performance.now() - startedAt);
    };
    await timed();
    await timed();
    isOverloaded = false;
    await timed();
    isOverloaded = true;
    await timed();
    const begunAt = performance.now();
    await sleep(2_000);
    await timed();
    const [first = 0, second = 0, third = 0, fourth = 0, last = 0] = waits;
    assert.ok(first >= 599, String(waits));
    assert.ok(Math.max(second, third, fourth) < 250, String(waits));
    const regained = 0.1 * (performance.now() - begunAt);
    assert.ok(last >= 150 && last < regained + 250, String(waits));
  },
);

room('work stops yielding when the processors have room, or its signal aborts', async () => {
  let isOverloaded = true;
  const yields = yieldWhile(() => isOverloaded, 600_000);
  const waiting = yields(never);
  await sleep(100);
  isOverloaded = false;
  await waiting;
  isOverloaded = true;
  await yields(AbortSignal.timeout(300));
});

room.run();
