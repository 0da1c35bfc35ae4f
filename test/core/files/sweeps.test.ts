/** Periodic work on stored bytes while this core may not do it, and after that. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startBlobSweep } from '../../../core/files/orphan-sweep.ts';
import { startLossCheck } from '../../../core/files/s3/losses.ts';
import { openLog } from '../../../proto/common/log.ts';
import { NO_METRICS } from '../../../proto/common/metrics.ts';
import { until } from '../../support/poll.ts';

const test = suite('core/files/sweeps');
const log = openLog({ role: 'core', level: 'silent' });
/** In milliseconds: no test lasts so long. */
const NEVER_MS = 1e9;

test('a list that is due while another core sweeps waits until this one may', async () => {
  let held = 0;
  let isLeader = false;
  let [lists, uploads] = [0, 0];
  const files = {
    remove: async () => undefined,
    async *list() {
      lists += 1;
      yield [];
    },
    sweepUploads: async () => {
      uploads += 1;
      return 0;
    },
    listPeriodMs: NEVER_MS,
  };
  const isHeld = () => {
    if (!isLeader) held += 1;
    return !isLeader;
  };
  const store = { removeUnusedBlobs: async () => [], knownBlobs: async () => [] };
  const options = { store, files, log, now: Date.now, isHeld, periodMs: 1 };
  await using _ = await startBlobSweep(options);
  await until(() => held > 4); // the list was due at the second
  assert.equal([lists, uploads], [0, 0]);
  isLeader = true;
  await until(() => lists === 1);
  const before = uploads;
  await until(() => uploads > before + 2);
  assert.is(lists, 1, 'open uploads are looked for each time, objects once in a period');
});

test('objects are compared by the core that may, again after a failure, then weekly', async () => {
  let isLeader = false;
  let pauses = 0;
  /** The pauses before each. */
  const readAfter: number[] = [];
  const pause = async () => {
    pauses += 1;
    await new Promise(setImmediate);
  };
  const listBlobs = async () => {
    readAfter.push(pauses);
    if (readAfter.length === 1) throw new Error('the database is away');
    return [];
  };
  const store = { listBlobs, getBlob: async () => undefined };
  const options = { store, bucket: {} as never, log, metrics: NO_METRICS, pause };
  await using _ = startLossCheck({ ...options, isHeld: () => !isLeader });
  await until(() => pauses > 5);
  assert.equal(readAfter, []);
  isLeader = true;
  await until(() => readAfter.length > 2);
  const [failed = 0, first = 0, second = 0] = readAfter;
  assert.is(first - failed, 1, 'ten minutes');
  assert.is(second - first, 1_008, 'a week of ten minutes');
});

test.run();
