/** Our tar: what it writes, the system's tar and our own strict reader read alike. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readHead, unwrapKeys } from '../../../../proto/archives/context-format.ts';
import { verifyProfile } from '../../../../proto/archives/context-reader.ts';
import { sealProfile } from '../../../../proto/archives/context-writer.ts';
import { readTar } from '../../../../proto/archives/tar-reader.ts';
import { packProfile } from '../../../../runner/browser/profile/profile.ts';
import { packDirectory } from '../../../../runner/browser/profile/tar-writer.ts';
import { PAIR } from '../../../proto/archives/sealed.ts';
import { tempDirectory, writeTree } from '../../../support/temp.ts';

const pack = suite('runner/browser/profile/tar-writer');

pack('names of any length, files of any size and hard links are packed', async () => {
  await using dir = tempDirectory();
  const from = join(dir.path, 'from');
  writeTree(from, {
    empty: '',
    'a/é/x': 'x',
    ...Object.fromEntries(
      [90, 99, 100, 101, 200].map((length) => [`${'n'.repeat(length)}`, String(length)]),
    ),
    [`deep/${'d'.repeat(97)}/${'e'.repeat(97)}`]: 'deep',
    block: 'b'.repeat(512),
    left: 'out',
  });
  writeFileSync(join(from, 'large'), randomBytes(1_000_001));
  linkSync(join(from, 'block'), join(from, 'second'));
  symlinkSync('/etc/passwd', join(from, 'link'));
  mkdirSync(join(from, 'bare'));
  const parts: Buffer[] = [];
  for await (const part of packDirectory(from, (path) => path !== 'left')) parts.push(part);
  const tar = Buffer.concat(parts);

  const to = join(dir.path, 'to');
  mkdirSync(to);
  execFileSync('tar', ['-x', '-C', to], { input: tar });
  const names = (root: string) => readdirSync(root, { recursive: true }).map(String).sort();
  assert.equal(
    names(to),
    names(from).filter((name) => name !== 'left' && name !== 'link'),
  );
  const seen: string[] = [];
  for await (const { kind, path, body } of readTar(chunks(tar))) {
    seen.push(path.replace(/\/$/, ''));
    const bytes: Buffer[] = [];
    for await (const part of body) bytes.push(part);
    if (kind === 'directory') continue;
    assert.ok(Buffer.concat(bytes).equals(readFileSync(join(from, path))), path);
    assert.ok(readFileSync(join(to, path)).equals(readFileSync(join(from, path))), path);
  }
  assert.equal(seen.sort(), names(to));
});

/** In pieces that end nowhere in particular. */
async function* chunks(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 777) yield bytes.subarray(at, at + 777);
}

pack('memory stays flat while 2 GiB are packed, sealed and verified', async () => {
  await using dir = tempDirectory();
  const from = join(dir.path, 'from');
  // most of it a hole, which takes no disk; the rest keeps it from being a bomb
  writeTree(from, { large: '' });
  truncateSync(join(from, 'large'), 2 * 1024 ** 3 - (32 << 20));
  writeFileSync(join(from, 'random'), randomBytes(30 << 20));
  const before = process.memoryUsage().rss;
  let most = 0;
  async function* watched(tar: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const part of tar) {
      most = Math.max(most, process.memoryUsage.rss() - before);
      yield part;
    }
  }
  const path = join(dir.path, 'sealed');
  await sealProfile(watched(packProfile(from)), PAIR.publicKey, path);
  const keys = unwrapKeys(await readHead(path), PAIR.privateKey);
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss() - before);
  }, 10);
  const { entries, bytes } = await verifyProfile(path, keys);
  clearInterval(timer);
  assert.equal([entries, bytes], [2, 2 * 1024 ** 3 - (2 << 20)]);
  assert.ok(most < 256_000_000, `${most} bytes more`);
});

pack('an empty directory is an empty tar, a missing one fails', async () => {
  await using dir = tempDirectory();
  const parts: Buffer[] = [];
  for await (const part of packDirectory(dir.path, () => true)) parts.push(part);
  assert.equal(Buffer.concat(parts), Buffer.alloc(1_024));
  const missing = packDirectory(join(dir.path, 'missing'), () => true).next();
  assert.is(await missing.then(String, (error: NodeJS.ErrnoException) => error.code), 'ENOENT');
});

pack.run();
