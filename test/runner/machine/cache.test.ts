/** The cache of a runner is of this boot of the machine, or the next start removes it. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../proto/common/log.ts';
import { bootId, openCacheDir } from '../../../runner/machine/cache.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('runner/machine/cache');
const log = openLog({ role: 'test', level: 'silent' });
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function fill(dir: string): void {
  for (const name of ['bundles', 'installs', 'extensions', 'chromium']) {
    mkdirSync(join(dir, name), { recursive: true });
    writeFileSync(join(dir, name, 'kept'), '');
  }
}

test('a cache of this boot is kept, a cache of another or an unknown boot is emptied', async () => {
  await using temp = tempDirectory();
  const dir = join(temp.path, 'cache');
  await openCacheDir(dir, { log, boot: 'one' });
  fill(dir);
  await openCacheDir(dir, { log, boot: 'one' });
  assert.is(readdirSync(dir).length, 5);
  for (const spoil of [
    () => undefined,
    () => writeFileSync(join(dir, 'boot'), ''),
    () => writeFileSync(join(dir, 'boot'), '\0\0\0'),
  ]) {
    fill(dir);
    spoil();
    await openCacheDir(dir, { log, boot: 'two' });
    assert.equal(readdirSync(dir), ['boot']);
    assert.is(readFileSync(join(dir, 'boot'), 'utf8').trim(), 'two');
  }
  fill(dir);
  await openCacheDir(dir, { log, boot: undefined }); // a system without a boot id
  assert.equal(readdirSync(dir), []);
});

test('this machine has a boot id', () => {
  assert.match(bootId() ?? '', UUID);
  assert.is(bootId(), bootId());
});

test.run();
