/** Whether there is room, as the kernel's pressure says. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { hasCpuRoom } from '../../../runner/common/cpu-room.ts';

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

room.run();
