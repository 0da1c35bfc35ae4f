/**
 * Wild requests for each operation of the published description, sent to a core and gateway in a
 * separate process. Every answer is as described and no internal error, concurrent good requests
 * are answered, and memory does not grow. TABERN_FUZZ_SEED sets another seed. test/bench/fuzz.ts
 * measures the delays.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sized } from '../../support/whole.ts';
import { openFlood } from './flood.ts';
import { openService } from './service.ts';

const test = suite('gateway/fuzz/rest');

const SEED = Number(process.env['TABERN_FUZZ_SEED'] ?? 7);
console.log(`TABERN_FUZZ_SEED=${SEED}`);
const COUNT = sized(50, 200);
/** Until every route has been compiled and the store's caches are full. */
const WARM_COUNT = 20;
const MIB = 1 << 20;
const GROWTH_MAX_BYTES = 50 * MIB;

test(`${COUNT} random requests for each operation receive responses as described`, async () => {
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
