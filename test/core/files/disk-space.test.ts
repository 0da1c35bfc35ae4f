/** Room on the disk: the reserve of core/README.md. */
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type DiskRule, openDisk } from '../../../core/files/disk-space.ts';
import { openLog } from '../../../proto/common/log.ts';
import { errorOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('core/files/disk-space');

const MIB = 1 << 20;
const log = openLog({ role: 'core', level: 'silent' });
const marks = { lowBytes: 4 * MIB, highBytes: 8 * MIB };
const rule: DiskRule = { reserveBytes: MIB, ...marks, periodMs: 5 };

test('on a full disk running work ends and new work is refused, until there is space', async () => {
  await using dir = tempDirectory();
  const child = fileURLToPath(new URL('./room-child.ts', import.meta.url));
  const mount = 'mount -t tmpfs -o size=40m tmpfs "$1" && TMPDIR="$1" exec "$0" "$2" "$1"';
  const args = ['-rm', 'bash', '-c', mount, process.execPath, dir.path, child];
  const { status, stdout, stderr } = spawnSync('unshare', args, { encoding: 'utf8' });
  assert.is(status, 0, stderr);
  const expected = { refused: 'STORAGE_FULL', isGivenUp: true, accepted: true };
  assert.equal(JSON.parse(stdout), { ...expected, status: 'COMPLETED', claims: 1 });
});

test('between the two limits the state stays as it is, roomy or low', async () => {
  await using dir = tempDirectory();
  let freeBytes = 6 * MIB;
  const options = { dir: dir.path, log, rule, freeOf: () => freeBytes };
  const reserve = join(dir.path, 'reserve');
  await using disk = openDisk(options);
  await until(() => existsSync(reserve) && statSync(reserve).size === MIB);
  disk.checkRoom();
  freeBytes = 3 * MIB;
  await until(() => disk.isLow);
  assert.not(existsSync(reserve));
  freeBytes = 6 * MIB;
  await until(() => disk.freeBytes === freeBytes);
  assert.ok(disk.isLow);
  assert.match(String(await errorOf((async () => disk.checkRoom())())), 'The disk is almost full');
  freeBytes = 9 * MIB;
  await until(() => !disk.isLow && existsSync(reserve));
});

test('the reserve is not allocated when it would make the disk low', async () => {
  await using dir = tempDirectory();
  let looks = 0;
  const freeOf = () => {
    looks += 1;
    return 4 * MIB + 1;
  };
  await using disk = openDisk({ dir: dir.path, log, rule, freeOf });
  await until(() => looks > 3);
  assert.not(disk.isLow);
  assert.not(existsSync(join(dir.path, 'reserve')));
});

test.run();
