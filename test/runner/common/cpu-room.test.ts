/** Room is waited for as the kernel's pressure says; without it, once. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { cpuRoom } from '../../../runner/common/cpu-room.ts';

const room = suite('runner/common/cpu-room');
const never = new AbortController().signal;

/** A total that grows by so much of the time between two looks. */
function pressure(parts: number[]) {
  let [total, before, looks] = [0, performance.now(), 0];
  const read = (): string => {
    const now = performance.now();
    if (looks % 2 === 1) total += (parts[(looks - 1) / 2] ?? 0) * (now - before) * 1_000;
    before = now;
    looks += 1;
    return `some avg10=0.00 avg60=0.00 avg300=0.00 total=${Math.round(total)}\nfull total=9\n`;
  };
  return { read, looks: () => looks / 2 };
}

room('there is room when tasks waited for less than a quarter of a look', async () => {
  const { read, looks } = pressure([0.9, 0.5, 0.1]);
  await cpuRoom(never, read);
  assert.is(looks(), 3);
});

room('a kernel that tells nothing has room', async () => {
  await cpuRoom(never, () => '');
});

room('a signal ends the wait', async () => {
  const controller = new AbortController();
  let looks = 0;
  const read = (): string => {
    looks += 1;
    if (looks === 5) controller.abort();
    return `some total=${looks * 1_000_000_000}`;
  };
  await cpuRoom(controller.signal, read);
  assert.is(looks, 6);
});

room.run();
