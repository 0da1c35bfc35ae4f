/**
 * power-loss: a file of keys/ that was used once is intact afterwards. A separate disk loses the
 * power; no file of it is open at that time, so no process has to end.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openSealer } from '../../core/common/sealer.ts';
import { tokenFile } from '../../core/common/secret-files.ts';
import { openLog } from '../../proto/common/log.ts';
import { storedRunnerId } from '../../runner/machine/runner-id.ts';
import { tempDirectory } from '../support/temp.ts';
import { hasDisks, openDisk } from './disk.ts';

const power = suite('power-keys');
const log = openLog({ role: 'test', level: 'silent' });
const MAKERS: Record<string, (dataDir: string) => unknown> = {
  'runner.id': (dataDir) => storedRunnerId(dataDir, log),
  'runner.token': (dataDir) => tokenFile(join(dataDir, 'keys', 'runner.token')),
  'master.key': (dataDir) => openSealer(join(dataDir, 'keys', 'master.key'), null),
};

for (const [name, make] of Object.entries(MAKERS)) {
  if (!hasDisks()) break;
  power(`power-loss: keys/${name} of a new data directory is unchanged`, async () => {
    await using disk = openDisk();
    const dataDir = join(disk.path, 'a', 'data');
    make(dataDir);
    const path = join(dataDir, 'keys', name);
    const before = readFileSync(path, 'utf8');
    disk.losePower();
    disk.mountAgain();
    assert.is(readFileSync(path, 'utf8'), before);
    make(dataDir);
    assert.is(readFileSync(path, 'utf8'), before);
  });
}

// Also without such a disk.
power('each key file is created once', async () => {
  await using dir = tempDirectory();
  for (const [name, make] of Object.entries(MAKERS)) {
    make(dir.path);
    const before = readFileSync(join(dir.path, 'keys', name), 'utf8');
    make(dir.path);
    assert.is(readFileSync(join(dir.path, 'keys', name), 'utf8'), before);
  }
  assert.equal(readdirSync(join(dir.path, 'keys')).sort(), Object.keys(MAKERS).sort());
});

power.run();
