import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openSelfTestRecord } from '../../../runner/machine/self-test-record.ts';
import { boot } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('runner/machine/self-test-record');
const PRODUCT = 'HeadlessChrome/156.0.8078.79';

test('it holds for the same program, sandbox and release only, until it is removed', async () => {
  await using dir = tempDirectory();
  const program = join(dir.path, 'chrome');
  writeFileSync(program, 'one');
  const tested = { program, sandbox: 'bwrap', isNested: true, version: '1.0.0' };
  const open = (change = {}) => openSelfTestRecord(dir.path, { ...tested, ...change });
  const record = await open();
  assert.is(await record.passed(), undefined);
  await record.write(PRODUCT);
  assert.is(await record.passed(), PRODUCT);
  assert.is(await (await open()).passed(), PRODUCT);
  for (const change of [{ sandbox: 'none' }, { isNested: false }, { version: '1.0.1' }]) {
    assert.is(await (await open(change)).passed(), undefined, JSON.stringify(change));
  }
  // an update of the package
  writeFileSync(`${program}.new`, 'two');
  renameSync(`${program}.new`, program);
  assert.is(await (await open()).passed(), undefined);
  await record.remove();
  assert.is(await record.passed(), undefined);
});

test('a damaged record is none', async () => {
  await using dir = tempDirectory();
  const program = join(dir.path, 'chrome');
  writeFileSync(program, '');
  const tested = { program, sandbox: 'bwrap', isNested: true, version: '1.0.0' };
  const record = await openSelfTestRecord(dir.path, tested);
  await record.write(PRODUCT);
  for (const text of ['', '\0'.repeat(80), PRODUCT, `${PRODUCT}\n{`]) {
    writeFileSync(join(dir.path, 'browser-self-test'), text);
    assert.is(await record.passed(), undefined);
  }
});

test('a second start tests its Chrome again only without a record', async () => {
  await using dir = tempDirectory();
  mkdirSync(join(dir.path, 'cache')); // without the record that tests lend each other
  await using stack = await boot({ data: dir.path });
  const works = async (): Promise<void> => {
    const { status } = await stack.call<{ status: string }>('/v1/sessions', { json: {} });
    assert.is(status, 'RUNNING');
  };
  await works();
  await stack.restart();
  await works();
  assert.match(stack.logs(), /Chrome has worked since the boot/);
  assert.is(stack.logs().split('Chrome works').length, 2, 'one self-test');
  // a record that can be neither read nor written, as on a full disk
  await stack.kill('SIGTERM');
  const record = join(stack.dataDir, 'cache', 'browser-self-test');
  rmSync(record);
  mkdirSync(record);
  await stack.restart();
  await works();
  assert.match(stack.logs(), /recording the self-test of Chrome failed/);
});

test.run();
