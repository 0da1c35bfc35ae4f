/** The time that commits wait for the disk, in readiness and metrics. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openSyncs } from '../../../core/store/syncs.ts';

const test = suite('core/store/syncs');

test('the percentile is of ten minutes, the slowest twentieth, and at least ten commits', () => {
  let at = 0;
  const syncs = openSyncs(() => at);
  for (let n = 1; n <= 9; n += 1) syncs.add(1_000);
  assert.is(syncs.p95Ms(), undefined);
  syncs.add(1_000);
  assert.is(syncs.p95Ms(), 1_000);
  at += 600_001;
  for (let n = 1; n <= 100; n += 1) syncs.add(n);
  assert.is(syncs.p95Ms(), 95);
});

test.run();
