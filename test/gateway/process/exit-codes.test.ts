import { chownSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { coreFailure, EXIT, gatewayFailure } from '../../../gateway/process/exit-codes.ts';
import { ANOTHER_RUNS, ConfigError } from '../../../proto/common/env.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('gateway/process/exit-codes');

test('a data directory in use, an invalid setting and a failed disk differ by exit code', () => {
  assert.is(coreFailure(new ConfigError(`${ANOTHER_RUNS}: /srv`), '/srv').code, EXIT.another);
  assert.is(coreFailure(new ConfigError('TABERN_LEASE_MS must be'), '/srv').code, EXIT.config);
  assert.is(coreFailure(new Error('SQLITE_IOERR'), '/srv').code, EXIT.storage);
  assert.match(coreFailure(new Error('EACCES'), '/srv').message, '/srv: EACCES');
});

/** The Exit for an error of the system or of SQLite. */
function failedWith(code: string, dataDir: string, path?: string) {
  return coreFailure(Object.assign(new Error(`${code}: why`), { code, path }), dataDir);
}

test('a permission that is missing in the data directory is not a storage failure', async () => {
  await using dir = tempDirectory();
  for (const code of ['EACCES', 'EPERM']) {
    const { code: exit, message } = failedWith(code, dir.path, join(dir.path, 'keys/a'));
    assert.is(exit, EXIT.config, code);
    assert.match(message, `cannot use the data directory ${dir.path}, which has the mode 0700`);
  }
  const readOnly = failedWith('EROFS', dir.path, join(dir.path, 'lock.db'));
  assert.is(readOnly.code, EXIT.config);
  assert.match(readOnly.message, `${dir.path} is on a read-only file system`);
});

test('an owner other than this user is named', async () => {
  await using dir = tempDirectory();
  const isRoot = process.getuid?.() === 0;
  if (isRoot) chownSync(dir.path, 12_345, 12_345);
  const [path, owner] = isRoot ? [dir.path, 12_345] : ['/', 0];
  const { message } = failedWith('EACCES', path, join(path, 'none'));
  assert.match(message, `which belongs to user ${owner}: run the command as its user, or`);
});

test('the codes for another path, and for a usable directory, are storage failures', async () => {
  await using dir = tempDirectory();
  for (const [code, path] of [
    ['EACCES', '/usr/lib/a.node'],
    ['EPERM', `${dir.path}-other/a`],
    ['EROFS', '/proc/a'],
    ['EACCES', undefined],
    ['SQLITE_CANTOPEN', undefined],
    ['SQLITE_READONLY_DBMOVED', undefined],
    ['SQLITE_IOERR_WRITE', undefined],
    ['ENOSPC', join(dir.path, 'a')],
  ] as const) {
    const { code: exit, message } = failedWith(code, dir.path, path);
    assert.is(exit, EXIT.storage, `${code} ${path}`);
    assert.match(message, `cannot use the data directory ${dir.path}: ${code}: why`);
  }
});

test('a port in use and an address of another machine have different errors', () => {
  const failed = (code: string) => gatewayFailure(Object.assign(new Error(code), { code }), 'a:1');
  assert.is(failed('EADDRINUSE').code, EXIT.port);
  assert.match(failed('EADDRINUSE').message, /a:1 is in use/);
  assert.is(failed('EADDRNOTAVAIL').code, EXIT.config);
});

test.run();
