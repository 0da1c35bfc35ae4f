/**
 * The stored form of contexts: what was sealed comes back, memory stays flat, and whatever is
 * damaged or not allowed is one error. proto/spec/contexts.md 4.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PROFILE_LIMITS } from '../../../proto/archives/context-entries.ts';
import { profileEntries, verifyProfile } from '../../../proto/archives/context-reader.ts';
import { sealProfile } from '../../../proto/archives/context-writer.ts';
import { faultOf } from '../../support/fault.ts';
import { tempDirectory } from '../../support/temp.ts';
import { VECTOR, VECTOR_ENTRIES, VECTOR_PRIVATE_KEY } from './context-vector.ts';
import { expectInvalid, fileWith, judge, keysOf } from './judge.ts';
import { OTHER, PAIR, sealedByHand, tarOf, type Wrong } from './sealed.ts';

const profile = suite('proto/archives/context-reader');

const TAR = tarOf([
  { path: './', type: '5' },
  { path: './Default/', type: '5' },
  { path: './Default/Cookies', body: randomBytes(200_000) },
]);

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

type Entry = { kind: string; path: string; mode: number; text: string };

async function entriesOf(path: string, keys: Buffer): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const { kind, path: name, mode, body } of profileEntries(path, keys)) {
    const parts: Buffer[] = [];
    for await (const part of body) parts.push(part);
    entries.push({ kind, path: name, mode, text: Buffer.concat(parts).toString('latin1') });
  }
  return entries;
}

profile('an encrypted profile is restored byte for byte', async () => {
  await using dir = tempDirectory();
  const path = join(dir.path, 'sealed');
  const body = randomBytes(3_000_000);
  const tar = tarOf([
    { path: 'a/b', body },
    { path: 'empty', body: '' },
  ]);
  await sealProfile(once(tar), PAIR.publicKey, path);
  const [first, second] = await entriesOf(path, await keysOf(path));
  assert.is(first?.path, 'a/b');
  assert.ok(Buffer.from(first?.text ?? '', 'latin1').equals(body));
  assert.equal([second?.path, second?.text], ['empty', '']);
});

profile('the test vector of layout version 1 opens', async () => {
  await using dir = tempDirectory();
  const path = fileWith(dir, Buffer.from(VECTOR, 'base64'));
  const keys = await keysOf(path, VECTOR_PRIVATE_KEY);
  assert.equal(await entriesOf(path, keys), [...VECTOR_ENTRIES]);
});

profile('a file written from the description opens', async () => {
  assert.equal(await judge(sealedByHand(TAR)), { entries: 3, bytes: 200_000 });
});

profile('two seals of one directory share no bytes but their layout', async () => {
  await using dir = tempDirectory();
  const paths = [join(dir.path, '1'), join(dir.path, '2')];
  for (const path of paths) await sealProfile(once(TAR), PAIR.publicKey, path);
  const [one, other] = await Promise.all(paths.map((path) => keysOf(path)));
  assert.is.not(one?.toString('hex'), other?.toString('hex'));
});

profile('a damaged, cut or foreign file is one error', async () => {
  const whole = sealedByHand(TAR);
  const ivAt = 7 + 256;
  for (const at of [0, 3, 4, 5, 6, 7, 100, ivAt, ivAt + 16, whole.length - 40, whole.length - 1]) {
    const flipped = Buffer.from(whole);
    flipped.writeUInt8((flipped[at] ?? 0) ^ 1, at);
    await expectInvalid(flipped);
  }
  for (const length of [0, 4, 6, 7, 200, ivAt, ivAt + 16, ivAt + 48, whole.length - 1]) {
    await expectInvalid(whole.subarray(0, length));
  }
  await expectInvalid(Buffer.concat([whole, Buffer.alloc(1)]));
  await expectInvalid(randomBytes(10_000));
});

const WRONGS: Record<string, Wrong> = {
  'another magic': { magic: 'TBCY' },
  'another version': { version: 2 },
  'keys that do not unwrap': { wrapped: randomBytes(256) },
  'no wrapped keys': { wrapped: Buffer.alloc(0) },
  'more wrapped keys than a key has': { wrapped: randomBytes(2_000) },
  'no ciphertext': { body: Buffer.alloc(0) },
  'a part of a block': { body: randomBytes(100) },
  'random ciphertext': { body: randomBytes(4_096) },
  'no padding': { packed: zstdCompressSync(TAR).subarray(0, 160), hasPadding: false },
  'bad padding': { packed: Buffer.alloc(160, 17), hasPadding: false },
  'not zstd': { packed: randomBytes(1_000) },
  'zstd cut short': { packed: zstdCompressSync(TAR).subarray(0, -5) },
  nothing: { packed: Buffer.alloc(0) },
  'a window beyond 8 MiB': { packed: hugeWindow() },
};

/** A frame that requires a window of 128 MiB, with one empty last block. */
function hugeWindow(): Buffer {
  return Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88, 0x01, 0x00, 0x00]);
}

for (const [name, wrong] of Object.entries(WRONGS)) {
  profile(`refused: ${name}`, () => expectInvalid(sealedByHand(TAR, wrong)));
}

profile('a bomb of 1,000 to 1 and a profile too large packed or unpacked are refused', async () => {
  await expectInvalid(sealedByHand(tarOf([{ path: 'a', body: Buffer.alloc(17 << 20) }])));
  const { packedMaxBytes, unpackedMaxBytes } = PROFILE_LIMITS;
  assert.equal([packedMaxBytes, unpackedMaxBytes], [512 * 2 ** 20, 2 * 2 ** 30]);
  await judge(sealedByHand(TAR), { ...PROFILE_LIMITS, unpackedMaxBytes: TAR.length });
  await expectInvalid(sealedByHand(TAR), { ...PROFILE_LIMITS, unpackedMaxBytes: TAR.length - 1 });
  await expectInvalid(sealedByHand(TAR), { ...PROFILE_LIMITS, packedMaxBytes: 100_000 });
});

profile('the key of another context unwraps nothing', async () => {
  await using dir = tempDirectory();
  const path = fileWith(dir, sealedByHand(TAR));
  const keys = await keysOf(path, OTHER.privateKey);
  assert.is(keys.length, 64);
  assert.is((await faultOf(verifyProfile(path, keys))).reason, 'ARCHIVE_INVALID');
});

profile('a seal beyond the limits leaves no file', async () => {
  await using dir = tempDirectory();
  const path = join(dir.path, 'sealed');
  for (const name of ['packedMaxBytes', 'unpackedMaxBytes']) {
    const limits = { ...PROFILE_LIMITS, [name]: 100_000 };
    const fault = await faultOf(sealProfile(once(TAR), PAIR.publicKey, path, { limits }));
    assert.is(fault.reason, 'BODY_TOO_LARGE');
    assert.is(existsSync(path), false);
  }
});

profile('memory does not grow while 400 MB are encrypted and decrypted', async () => {
  await using dir = tempDirectory();
  const path = join(dir.path, 'sealed');
  const bytes = 400_000_000;
  const zeros = Buffer.alloc(950_000);
  const empty = tarOf([{ path: 'a', size: bytes }], Buffer.alloc(0));
  async function* tar(): AsyncGenerator<Buffer> {
    yield empty;
    for (let at = 0; at < bytes; at += 1_000_000) {
      yield Buffer.concat([randomBytes(50_000), zeros]);
    }
    yield Buffer.alloc(1_024 + ((512 - (bytes % 512)) % 512));
  }
  const before = process.memoryUsage().rss;
  let most = 0;
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss - before);
  }, 10).unref();
  await sealProfile(tar(), PAIR.publicKey, path);
  assert.equal(await verifyProfile(path, await keysOf(path)), { entries: 1, bytes });
  clearInterval(timer);
  assert.ok(most < 120_000_000, `${most} bytes more`);
});

profile.run();
