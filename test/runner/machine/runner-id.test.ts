/** A runner has one id per data directory, and a damaged file does not stop the runner. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../proto/common/log.ts';
import { storedRunnerId } from '../../../runner/machine/runner-id.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('runner/machine/runner-id');
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const silent = openLog({ role: 'test', level: 'silent' });

test('the id is a UUID in a file of mode 0600 and the same at every start', async () => {
  await using dir = tempDirectory();
  const id = storedRunnerId(dir.path, silent);
  assert.match(id, UUID);
  assert.is(storedRunnerId(dir.path, silent), id);
  assert.equal(readdirSync(join(dir.path, 'keys')), ['runner.id']);
  assert.is(statSync(join(dir.path, 'keys', 'runner.id')).mode & 0o777, 0o600);
});

test('a file without a UUID is replaced, with a warning', async () => {
  await using dir = tempDirectory();
  const path = join(dir.path, 'keys', 'runner.id');
  const before = storedRunnerId(dir.path, silent);
  for (const text of ['', '\0'.repeat(37), before.slice(0, 20), `${before}${before}`]) {
    writeFileSync(path, text);
    const warned: unknown[] = [];
    const log = Object.assign(Object.create(silent), {
      warn: (...of: unknown[]) => warned.push(of),
    });
    const id = storedRunnerId(dir.path, log);
    assert.match(id, UUID, JSON.stringify(text));
    assert.is.not(id, before);
    assert.is(readFileSync(path, 'utf8').trim(), id);
    assert.is(warned.length, 1);
  }
  assert.equal(readdirSync(join(dir.path, 'keys')), ['runner.id']);
});

test.run();
