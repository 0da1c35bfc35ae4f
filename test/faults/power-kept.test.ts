/**
 * power-loss: a runner uses no incomplete file of its cache. The real caches write to a separate
 * disk, which loses its power; then a runner of the next boot opens them.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../proto/common/log.ts';
import { openInstalled } from '../../runner/builds/install/cache.ts';
import { openBundles } from '../../runner/functions/bundle-cache.ts';
import { openCacheDir } from '../../runner/machine/cache.ts';
import { tempDirectory } from '../support/temp.ts';
import { hasDisks, openDisk } from './disk.ts';

const power = suite('power-kept');
const log = openLog({ role: 'test', level: 'silent' });
const BUNDLE = 'export const definitions = () => new Map();\n'.repeat(200);
const PACKAGE = 'module.exports = 1;\n'.repeat(200);
const KEPT = { projectId: 'project', key: 'a'.repeat(64) };
const { signal } = new AbortController();
const wanted = {
  blobId: 'blob',
  sha256: createHash('sha256').update(BUNDLE).digest('hex'),
};

/** The caches of a runner in that directory, after `boot`; core has one bundle. */
async function openCaches(dir: string, boot: string) {
  await openCacheDir(dir, { log, boot });
  let reads = 0;
  async function* readBlob() {
    reads += 1;
    yield { chunk: Buffer.from(BUNDLE) };
  }
  const clients = { blobs: { readBlob } as never };
  const now = Date.now;
  return {
    bundles: await openBundles({ dir: join(dir, 'bundles'), clients, call: {}, now }),
    installed: await openInstalled({ dir: join(dir, 'installs'), now, log }),
    reads: () => reads,
  };
}

/** A project whose packages are installed. */
function writeProject(root: string): void {
  mkdirSync(join(root, 'node_modules', 'dep'), { recursive: true });
  writeFileSync(join(root, 'node_modules', 'dep', 'index.js'), PACKAGE);
}

async function fill(dir: string, root: string): Promise<void> {
  const { bundles, installed } = await openCaches(dir, 'one');
  writeProject(root);
  await bundles.get(wanted, signal);
  await installed.keep(KEPT, root, PACKAGE.length);
}

/** The files that the next runner uses, with their expected content; an install may be repeated. */
async function check(dir: string, boot: string, root: string): Promise<number> {
  const { bundles, installed, reads } = await openCaches(dir, boot);
  const { path } = await bundles.get(wanted, signal);
  assert.is(readFileSync(path, 'utf8'), BUNDLE);
  mkdirSync(root, { recursive: true });
  if (await installed.take(KEPT, root)) {
    assert.is(readFileSync(join(root, 'node_modules', 'dep', 'index.js'), 'utf8'), PACKAGE);
  }
  return reads();
}

/** Files with their name on the disk, but without their content. */
function cutIn(dir: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map((name) => join(dir, name))
    .filter((path) => statSync(path).isFile() && statSync(path).size === 0);
}

if (hasDisks()) {
  power('power-loss: a file of 0 bytes in the cache is never used', async () => {
    await using disk = openDisk();
    const dir = join(disk.path, 'cache');
    await fill(dir, join(disk.path, 'build'));
    // Names reach the disk by other syncs: core's database is beside the cache.
    writeFileSync(join(disk.path, 'beside'), 'x', { flush: true });
    disk.losePower();
    disk.mountAgain();
    assert.ok(cutIn(dir).length > 0, 'the loss of power cut nothing: this test shows nothing');
    assert.is(await check(dir, 'two', join(disk.path, 'other')), 1);
  });
}

// Also without such a disk.
power('the whole cache is used again in the same boot', async () => {
  await using temp = tempDirectory();
  const dir = join(temp.path, 'cache');
  await fill(dir, join(temp.path, 'build'));
  assert.is(await check(dir, 'one', join(temp.path, 'other')), 0);
  assert.is(await check(dir, 'two', join(temp.path, 'third')), 1);
});

power.run();
