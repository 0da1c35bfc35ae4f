/** Shared downloads and complete entries of the cache. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ASIDE_MS, openBlobCache } from '../../../runner/common/blob-cache.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('runner/common/blob-cache');
const WEEK_MS = 7 * 24 * 3_600_000;
const { signal } = new AbortController();

/** A cache of at most 1 MiB, and core's blobs by their ids. */
async function openCache(blobs: Record<string, Uint8Array | string>, dir = tempDirectory()) {
  let reads = 0;
  let held: Promise<unknown> | undefined;
  async function* readBlob({ blobId }: { blobId: string }) {
    reads += 1;
    await held;
    const bytes = Buffer.from(blobs[blobId] ?? '');
    for (let at = 0; at < bytes.length; at += 64 << 10) {
      yield { chunk: bytes.subarray(at, at + (64 << 10)) };
    }
  }
  const cache = await openBlobCache(
    { dir: dir.path, clients: { blobs: { readBlob } as never }, call: {}, now: Date.now },
    {
      what: 'a text',
      maxBytes: 1 << 20,
      timeoutMs: 60_000,
      ending: '.txt',
      isBlob: true,
      make: async (file) => file,
    },
  );
  return {
    ...cache,
    wanted: (blobId: string) => ({ blobId, sha256: hashOf(blobs[blobId] ?? '') }),
    names: () => readdirSync(dir.path),
    reads: () => reads,
    hold: (until: Promise<unknown>) => {
      held = until;
    },
    [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
  };
}

function hashOf(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}

const messageOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'it was had',
    (error: Error) => error.message,
  );

test('concurrent requests share a download, and an existing entry is not downloaded', async () => {
  await using cache = await openCache({ one: 'text' });
  const wanted = cache.wanted('one');
  const paths = await Promise.all([cache.get(wanted, signal), cache.get(wanted, signal)]);
  assert.is(paths[0], paths[1]);
  assert.is(readFileSync(paths[0] ?? '', 'utf8'), 'text');
  await cache.get(wanted, signal);
  assert.is(cache.reads(), 1);
  assert.equal(cache.names(), [`${wanted.sha256}.txt`]);
});

test('a wrong hash and too many bytes leave no entry', async () => {
  await using cache = await openCache({ one: 'text', large: Buffer.alloc((1 << 20) + 1) });
  const other = { blobId: 'one', sha256: hashOf('another') };
  assert.match(await messageOf(cache.get(other, signal)), 'a text does not match its hash');
  assert.match(await messageOf(cache.get(cache.wanted('large'), signal)), 'is larger than 1 MiB');
  for (const sha256 of ['', '../up', hashOf('').toUpperCase()]) {
    assert.match(
      await messageOf(cache.get({ blobId: 'one', sha256 }, signal)),
      'has no valid hash',
    );
  }
  assert.equal(cache.names(), []);
  assert.ok(await cache.get(cache.wanted('one'), signal), 'a failure is not kept');
});

for (const [how, bytes] of [
  ['of 0 bytes', ''],
  ['of as many zeros', '\0\0\0\0'],
  ['of other bytes', 'else'],
] as const) {
  test(`an entry ${how}, as after a power loss, is downloaded again, once`, async () => {
    const dir = tempDirectory();
    const sha256 = hashOf('text');
    writeFileSync(join(dir.path, `${sha256}.txt`), bytes);
    await using cache = await openCache({ one: 'text' }, dir);
    const path = await cache.get(cache.wanted('one'), signal);
    assert.is(readFileSync(path, 'utf8'), 'text');
    await cache.get(cache.wanted('one'), signal);
    assert.is(cache.reads(), 1);
  });
}

test('a complete entry of an earlier process is used, a truncated one is not', async () => {
  const dir = tempDirectory();
  const path = join(dir.path, `${hashOf('text')}.txt`);
  writeFileSync(path, 'text');
  await using cache = await openCache({ one: 'text' }, dir);
  assert.is(await cache.get(cache.wanted('one'), signal), path);
  assert.is(cache.reads(), 0);
  writeFileSync(path, '');
  await cache.get(cache.wanted('one'), signal);
  assert.is(readFileSync(path, 'utf8'), 'text');
});

test('an aborted request ends, and others still receive the entry', async () => {
  await using cache = await openCache({ one: 'text' });
  const arriving = Promise.withResolvers<void>();
  cache.hold(arriving.promise);
  const leaving = new AbortController();
  const [left, stays] = [
    cache.get(cache.wanted('one'), leaving.signal),
    cache.get(cache.wanted('one'), signal),
  ];
  leaving.abort(new Error('it was cancelled'));
  assert.is(await messageOf(left), 'it was cancelled');
  arriving.resolve();
  assert.ok(await stays);
  assert.is(cache.reads(), 1);
});

test('entries that are unused for a week or incomplete are removed at start', async () => {
  const dir = tempDirectory();
  for (const [name, ageMs] of [
    ['old.txt', WEEK_MS + 3_600_000],
    ['young.txt', WEEK_MS - 3_600_000],
  ] as const) {
    writeFileSync(join(dir.path, name), '');
    const usedAt = (Date.now() - ageMs) / 1_000;
    utimesSync(join(dir.path, name), usedAt, usedAt);
  }
  for (const [name, ageMs] of [
    ['broken.part', ASIDE_MS + 60_000],
    ['under-way.part', ASIDE_MS - 60_000],
  ] as const) {
    mkdirSync(join(dir.path, name));
    writeFileSync(join(dir.path, name, 'bytes'), 'half');
    const madeAt = (Date.now() - ageMs) / 1_000;
    utimesSync(join(dir.path, name), madeAt, madeAt);
  }
  await using cache = await openCache({}, dir);
  assert.equal(cache.names(), ['under-way.part', 'young.txt']);
});

test.run();
