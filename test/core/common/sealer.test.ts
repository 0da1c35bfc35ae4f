/** Sealing, and the master key's file. */
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openSealer, sealerOf } from '../../../core/common/sealer.ts';
import { ConfigError } from '../../../proto/common/env.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { tempDirectory } from '../../support/temp.ts';

const seal = suite('core/common/sealer');
const secret = Buffer.from('a secret');

function thrown(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  return undefined;
}

seal('a sealed value opens at its place', () => {
  const sealer = sealerOf(randomBytes(32));
  assert.equal(sealer.open(sealer.seal(secret, 'a/1'), 'a/1'), secret);
});

seal('a sealed value opens from a plain Uint8Array, as the database thread sends it', () => {
  const sealer = sealerOf(randomBytes(32));
  assert.equal(sealer.open(new Uint8Array(sealer.seal(secret, 'a/1')), 'a/1'), secret);
});

seal('the same secret is sealed differently each time', () => {
  const sealer = sealerOf(randomBytes(32));
  assert.not.equal(sealer.seal(secret, 'a'), sealer.seal(secret, 'a'));
});

seal('a sealed value does not open elsewhere, changed, cut or under another key', () => {
  const sealer = sealerOf(randomBytes(32));
  const sealed = sealer.seal(secret, 'a/1');
  const other = sealerOf(randomBytes(32));
  const tries = [
    () => sealer.open(sealed, 'a/2'),
    () => other.open(sealed, 'a/1'),
    () => sealer.open(sealed.subarray(0, 20), 'a/1'),
    () => sealer.open(Buffer.alloc(0), 'a/1'),
    ...Array.from({ length: sealed.length }, (_, n) => () => {
      const changed = Buffer.from(sealed);
      changed[n] = (changed[n] ?? 0) ^ 1;
      sealer.open(changed, 'a/1');
    }),
  ];
  for (const open of tries) {
    const error = thrown(open);
    assert.instance(error, Fault);
    assert.is((error as Fault).reason, 'DATA_CORRUPT');
  }
});

seal(
  'the first start creates the key, readable by its owner only, and later starts use it',
  async () => {
    await using dir = tempDirectory();
    const path = join(dir.path, 'keys', 'master.key');
    const first = openSealer(path, null);
    assert.is(statSync(path).mode & 0o777, 0o600);
    assert.is(Buffer.from(readFileSync(path, 'utf8'), 'base64').length, 32);
    const second = openSealer(path, first.check);
    assert.equal(second.sealer.open(first.sealer.seal(secret, 'a'), 'a'), secret);
  },
);

seal('a key without a database is kept: an interrupted first start continues with it', async () => {
  await using dir = tempDirectory();
  const path = join(dir.path, 'master.key');
  openSealer(path, null);
  const key = readFileSync(path, 'utf8');
  openSealer(path, null);
  assert.is(readFileSync(path, 'utf8'), key);
});

seal(
  'another key, no key and half a key each refuse to start, in one line that names the file',
  async () => {
    await using dir = tempDirectory();
    const path = join(dir.path, 'master.key');
    const { check } = openSealer(path, null);
    const spoil = [
      () => writeFileSync(path, randomBytes(32).toString('base64')),
      () => writeFileSync(path, 'abc'),
      () => rmSync(path),
    ];
    for (const act of spoil) {
      act();
      const error = thrown(() => openSealer(path, check));
      assert.instance(error, ConfigError);
      assert.ok((error as Error).message.startsWith(path));
      assert.not.match((error as Error).message, /\n/);
    }
    assert.is(thrown(() => statSync(path)) === undefined, false, 'no key was made in its place');
  },
);

seal.run();
