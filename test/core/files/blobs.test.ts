/** The guarantees of stored bytes, on both engines: files, and objects of a real S3 server. */
import { createHash } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { openBlobFiles } from '../../../core/files/blob-files.ts';
import type { Blobs } from '../../../core/files/blobs.ts';
import type { Stored } from '../../../core/files/checked-bytes.ts';
import { sweepFiles } from '../../../core/files/orphan-sweep.ts';
import { openBucket } from '../../../core/files/s3/bucket.ts';
import { openObjects } from '../../../core/files/s3/objects.ts';
import { openLog } from '../../../proto/common/log.ts';
import { PART_BYTES } from '../../../proto/uploads/parts.ts';
import { faultOf } from '../../support/fault.ts';
import { type S3Server, startS3 } from '../../support/servers/s3.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('core/files/blobs');
const log = openLog({ role: 'core', level: 'silent' });
const MAX_BYTES = 64 << 20;
/** With the seconds by which the server rounds. */
const HOUR_MS = 3_605_000;

/** An engine, and what damages its bytes behind its back. */
type Scene = AsyncDisposable & {
  blobs: Blobs;
  /** All names that are stored. */
  names(): Promise<string[]>;
  replace(id: string, bytes: Buffer): Promise<void>;
  lose(id: string): Promise<void>;
};

let server: S3Server | undefined;

const ENGINES: Record<string, () => Promise<Scene>> = {
  async files() {
    const dir = tempDirectory();
    const at = (id: string) => join(dir.path, id);
    return {
      blobs: await openBlobFiles(dir.path, log),
      names: () => readdir(dir.path),
      replace: async (id, bytes) => writeFileSync(at(id), bytes),
      lose: async (id) => rmSync(at(id)),
      [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
    };
  },
  async s3() {
    server ??= await startS3();
    const dir = tempDirectory();
    const bucket = openBucket(await server.bucket());
    const { prefix } = bucket.place;
    return {
      blobs: await openObjects({ bucket, spoolDir: join(dir.path, 'spool'), log }),
      names: async () => (await bucket.list('')).items.map(({ key }) => key.slice(prefix.length)),
      replace: (id, bytes) => bucket.put(prefix + id, bytes),
      lose: (id) => bucket.remove(prefix + id),
      async [Symbol.asyncDispose]() {
        bucket[Symbol.dispose]();
        await dir[Symbol.asyncDispose]();
      },
    };
  },
};

for (const [name, open] of Object.entries(ENGINES)) {
  for (const [size, what] of [
    [0, 'no bytes'],
    [1, 'one byte'],
    [PART_BYTES, 'one part'],
    [2 * PART_BYTES + 1, 'three parts'],
  ] as const) {
    test(`${name}: a blob of ${what} is read as it was written`, async () => {
      await using scene = await open();
      const bytes = patternOf(size);
      const blob = await store(scene.blobs, bytes);
      assert.is(blob.size, size);
      assert.is(blob.sha256, createHash('sha256').update(bytes).digest('hex'));
      assert.ok((await all(scene.blobs.read(blob))).equals(bytes));
      await using local = await scene.blobs.local(blob, new AbortController().signal);
      assert.ok(readFileSync(local.path).equals(bytes));
      assert.ok((await scene.blobs.head(blob.id, 100)).equals(bytes.subarray(0, 100)));
      assert.equal(await scene.names(), [blob.id]);
      assert.is(await scene.blobs.exists(blob.id), true);
    });
  }

  test(`${name}: a range has exactly its bytes, also the first and the last`, async () => {
    await using scene = await open();
    const bytes = patternOf(300_000);
    const blob = await store(scene.blobs, bytes);
    for (const [start, end] of [
      [0, 1],
      [65_535, 200_001],
      [299_999, 300_000],
      [0, 300_000],
    ] as const) {
      const range = await all(scene.blobs.readRange(blob, start, end));
      assert.ok(range.equals(bytes.subarray(start, end)), `${start} to ${end}`);
    }
    assert.ok((await scene.blobs.head(blob.id, 100)).equals(bytes.subarray(0, 100)));
    assert.is((await scene.blobs.head(blob.id, 400_000)).length, 300_000);
  });

  for (const [what, size] of [
    ['before its first part', 10],
    ['in its third part', 2 * PART_BYTES + 10],
  ] as const) {
    test(`${name}: an upload beyond its limit, or aborted ${what}, stores nothing`, async () => {
      await using scene = await open();
      const { blobs } = scene;
      const large = await faultOf(blobs.write(newId(), chunksOf(patternOf(size)), size - 1));
      assert.is(large.reason, 'BODY_TOO_LARGE');
      async function* broken() {
        yield* chunksOf(patternOf(size));
        throw new Error('the client left');
      }
      const failed = await blobs.write(newId(), broken(), MAX_BYTES).catch(String);
      assert.match(String(failed), /the client left/);
      assert.equal(await scene.names(), []);
    });
  }

  test(`${name}: damaged, truncated, longer and lost bytes never look complete`, async () => {
    await using scene = await open();
    const bytes = patternOf(200_000);
    const damages: Record<string, (id: string) => Promise<void>> = {
      changed: (id) => scene.replace(id, Buffer.concat([bytes.subarray(1), Buffer.from('x')])),
      truncated: (id) => scene.replace(id, bytes.subarray(0, 199_999)),
      longer: (id) => scene.replace(id, Buffer.concat([bytes, bytes])),
      lost: (id) => scene.lose(id),
    };
    for (const [damage, apply] of Object.entries(damages)) {
      const blob = await store(scene.blobs, bytes);
      await apply(blob.id);
      let read = 0;
      const reading = (async () => {
        for await (const chunk of scene.blobs.read(blob)) read += chunk.length;
      })();
      assert.is((await faultOf(reading)).reason, 'DATA_CORRUPT', damage);
      assert.ok(read < blob.size, damage);
    }
    const lost = await store(scene.blobs, bytes);
    await scene.lose(lost.id);
    assert.is((await faultOf(scene.blobs.head(lost.id, 10))).reason, 'DATA_CORRUPT');
    assert.is((await faultOf(all(scene.blobs.readRange(lost, 1, 9)))).reason, 'DATA_CORRUPT');
    assert.is(await scene.blobs.exists(lost.id), false);
  });

  test(`${name}: a removed blob is gone, and removing a missing one is no error`, async () => {
    await using scene = await open();
    const [kept, first, second] = [
      await store(scene.blobs, Buffer.from('kept')),
      await store(scene.blobs, Buffer.from('a')),
      await store(scene.blobs, Buffer.from('b')),
    ];
    await scene.blobs.remove(first.id, second.id, newId());
    assert.equal(await scene.names(), [kept.id]);
  });

  test(`${name}: the sweep removes what has no row for an hour, and nothing else`, async () => {
    await using scene = await open();
    const known = await store(scene.blobs, Buffer.from('known'));
    const orphan = await store(scene.blobs, Buffer.from('orphan'));
    const sweep = (ageMs: number) =>
      sweepFiles({
        store: { knownBlobs: async (ids) => ids.filter((id) => id === known.id) },
        files: { ...scene.blobs, list: () => aged(scene.blobs, ageMs) },
        wall: Date.now,
      });
    assert.is(await sweep(0), 0);
    assert.equal((await scene.names()).sort(), [known.id, orphan.id].sort());
    assert.is(await sweep(HOUR_MS), 1);
    assert.equal(await scene.names(), [known.id]);
  });
}

test('stops', async () => {
  await server?.[Symbol.asyncDispose]();
});

test.run();

async function store(blobs: Blobs, bytes: Buffer): Promise<Stored> {
  const id = newId();
  return { id, ...(await blobs.write(id, chunksOf(bytes), MAX_BYTES)) };
}

/** The list, older by that much than it is. */
async function* aged(blobs: Blobs, byMs: number): ReturnType<Blobs['list']> {
  for await (const batch of blobs.list()) {
    yield batch.map((one) => ({ ...one, ageMs: async (wall) => byMs + (await one.ageMs(wall)) }));
  }
}

/** Bytes whose position shows. */
function patternOf(size: number): Buffer {
  const bytes = Buffer.alloc(size);
  for (let at = 0; at + 4 <= size; at += 4) bytes.writeUInt32LE((at * 2_654_435_761) >>> 0, at);
  return bytes;
}

async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
}

async function all(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts);
}
