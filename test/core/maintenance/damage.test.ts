/** Damage of the database is found by what SQLite reads; a check that cannot read reports none. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openDamage } from '../../../core/maintenance/damage.ts';
import { openLog } from '../../../proto/common/log.ts';
import { errorOf } from '../../support/fault.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('core/maintenance/damage');
const log = openLog({ role: 'core', level: 'silent' });

/** A directory with that file as its database, after an unclean end. */
function cut(database?: string) {
  const dir = tempDirectory();
  writeFileSync(join(dir.path, 'tabern.db-wal'), '');
  if (database !== undefined) writeFileSync(join(dir.path, 'tabern.db'), database);
  return dir;
}

test('a check that cannot open the database finds no damage', async () => {
  await using dir = cut();
  const mark = join(dir.path, 'damaged');
  writeFileSync(mark, 'suspected');
  await using damage = openDamage(dir.path, log);
  await damage.check(() => assert.unreachable('damage'));
  assert.ok(existsSync(mark), 'still suspected');
});

test('a check that cannot read the file as a database finds damage', async () => {
  await using dir = cut('no database '.repeat(1_000));
  writeFileSync(join(dir.path, 'damaged'), 'suspected');
  await using damage = openDamage(dir.path, log);
  const error = await errorOf(damage.check(() => {}));
  assert.match(String(error), /file is not a database/);
});

test.run();
