/**
 * 200 wild requests for each operation of the published description, before a
 * whole core in a process of its own. No answer is a failure of ours, each is as described, a good
 * request beside them is answered, and memory stays. TABERN_FUZZ_SEED draws others than the usual
 * ones. How late the loop and the good requests were is told by test/bench/fuzz.ts.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openFlood } from './flood.ts';
import { openService } from './service.ts';

const test = suite('gateway/fuzz/rest');

const SEED = Number(process.env['TABERN_FUZZ_SEED'] ?? 7);
const COUNT = 200;
/** Until every route has been compiled and the store's caches are full. */
const WARM_COUNT = 20;
const MIB = 1 << 20;
const GROWTH_MAX_BYTES = 50 * MIB;

test('200 wild requests for each operation are answered as described', async () => {
  await using service = await openService();
  using flood = await openFlood(service);
  for await (const { faults } of flood.faults(WARM_COUNT, SEED + 1)) {
    assert.is(faults.length, 0, faults.slice(0, 3).join('\n'));
  }
  const { rssBytes } = await service.taken();
  const asked = flood.faults(COUNT, SEED);
  for (;;) {
    const [{ value, done }, beside] = await Promise.all([asked.next(), flood.good()]);
    if (done) break;
    assert.is(beside, 200, `beside ${value.operation}`);
    assert.is(value.faults.length, 0, value.faults.slice(0, 3).join('\n'));
  }
  const growth = (await service.taken()).rssBytes - rssBytes;
  assert.ok(growth < GROWTH_MAX_BYTES, `${(growth / MIB).toFixed(0)} MiB more than before`);
});

test.run();
