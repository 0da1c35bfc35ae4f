/** kill -9 in the middle of a save keeps the old content complete; leftovers are swept. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { openBlobFiles } from '../../../core/files/blob-files.ts';
import { sweepFiles } from '../../../core/files/orphan-sweep.ts';
import { openStore } from '../../../core/store/thread.ts';
import { must } from '../../../proto/common/must.ts';
import { ENGINES, openBench, T0 } from '../store/engines.ts';

const test = suite('core/contexts/crash');
const CHILD = fileURLToPath(new URL('./crash-child.ts', import.meta.url));

/** A store with a context that holds `old`, while `next` is written and not yet content. */
async function openWithContent() {
  const bench = await openBench(must(ENGINES[0], 'engine'));
  const projectId = await bench.project('p');
  const [id, pairId, old, next] = [newId(), newId(), newId(), newId()];
  const pair = { publicKey: 'public', privateKey: Buffer.from('sealed'), at: T0 };
  await bench.store.addKeyPair({ ...pair, id: pairId });
  await bench.store.createContext({ id, projectId, name: null, nameKey: null, at: T0 });
  const folder = join(bench.dir, 'blobs');
  mkdirSync(folder);
  for (const blob of [old, next]) {
    writeFileSync(join(folder, blob), blob);
    const row = { id: blob, projectId, kind: 'CONTEXT', size: 36, sha256: 'aa' } as const;
    await bench.store.addBlob({ ...row, createdAt: T0 });
  }
  await bench.store.replaceContext({ id, projectId, blobId: old, at: T0 });
  return { bench, folder, projectId, id, old, next };
}

async function killedAt(point: string, args: string[]): Promise<void> {
  const child = spawn(process.execPath, [CHILD, ...args, point], { stdio: 'inherit' });
  const [, signal] = await once(child, 'close');
  assert.is(signal, 'SIGKILL');
}

for (const [point, isSaved] of [
  ['save-context:1', false],
  ['before-commit:1', false],
  ['after-commit:1', true],
] as const) {
  test(`killed at ${point}, the content is completely ${isSaved ? 'new' : 'old'}`, async () => {
    const { bench, folder, projectId, id, old, next } = await openWithContent();
    await using _ = bench;
    await bench.store.close();
    await killedAt(point, [bench.dir, id, projectId, next]);

    const onFatal = assert.unreachable as () => never;
    const store = await openStore({ dir: bench.dir, durability: 'full', onFatal });
    const content = await store.getContextContent({ id, projectId });
    const expected = isSaved ? next : old;
    assert.is(content?.blobId, expected);
    assert.ok(await store.getBlob(expected));
    // At the next start, files without a row are removed, then unreferenced rows with their files.
    const later = Date.now() + 7_200_000;
    const remove = async (name: string) => rmSync(join(folder, name));
    const files = { ...(await openBlobFiles(folder)), remove };
    await sweepFiles({ store, files, wall: () => later });
    assert.equal(readdirSync(folder).sort(), (isSaved ? [next] : [old, next]).sort());
    const unused = await store.removeUnusedBlobs({ before: later, max: 10 });
    assert.equal(unused, isSaved ? [] : [next]);
    assert.ok(readdirSync(folder).includes(expected));
    await store.close();
  });
}

test('blobs and contexts of another project are not found', async () => {
  const { bench, projectId, id, old } = await openWithContent();
  await using _ = bench;
  const other = await bench.project('other');
  const blob = { id: newId(), projectId: other, kind: 'CONTEXT', size: 1, sha256: 'aa' } as const;
  await bench.store.addBlob({ ...blob, createdAt: T0 });
  const replace = (project: string, blobId: string) =>
    bench.store.replaceContext({ id, projectId: project, blobId, at: T0 });
  assert.is((await replace(projectId, blob.id)).outcome, 'refused');
  assert.is((await replace(other, blob.id)).outcome, 'deleted', 'to the other it is not there');
  assert.is(await bench.store.getContextContent({ id, projectId: other }), undefined);
  assert.is((await bench.store.getContextContent({ id, projectId }))?.blobId, old);
});

test('a blob is the content of one context at most, and content is not dropped', async () => {
  const { bench, projectId, old } = await openWithContent();
  await using _ = bench;
  const pair = { publicKey: 'public', privateKey: Buffer.from('sealed'), at: T0 };
  await bench.store.addKeyPair({ ...pair, id: newId() });
  const second = newId();
  await bench.store.createContext({ id: second, projectId, name: null, nameKey: null, at: T0 });
  const steal = { id: second, projectId, blobId: old, at: T0 };
  assert.is((await bench.store.replaceContext(steal)).outcome, 'refused');
  assert.equal(await bench.store.dropContextBlobs([old]), []);
});

test.run();
