/** Stored files are read in the background: damage is found, slowly, and an end is at once. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { openBlobFiles } from '../../../core/files/blob-files.ts';
import { startScrub } from '../../../core/files/scrub.ts';
import { openLog } from '../../../proto/common/log.ts';
import { type Family, NO_METRICS } from '../../../proto/common/metrics.ts';
import { bareStore } from '../../support/core/bare-store.ts';
import { until } from '../../support/poll.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('core/files/scrub');
const REST_MS = 7 * 86_400_000;

/** A store with files, and a scrub whose pauses the test ends. */
async function openScene() {
  await using opened = new AsyncDisposableStack();
  const bare = opened.use(bareStore());
  const folder = opened.use(tempDirectory()).path;
  const files = await openBlobFiles(folder);
  const errors: string[] = [];
  const error = (...said: unknown[]) => void errors.push(JSON.stringify(said));
  const log = Object.assign(openLog({ role: 'test', level: 'silent' }), { error });
  const shown = new Map<string, number>();
  const metrics = {
    ...NO_METRICS,
    set: ({ name }: Family, value: number) => void shown.set(name, value),
    add: ({ name }: Family, _: unknown, by = 1) =>
      void shown.set(name, (shown.get(name) ?? 0) + by),
  };
  const pauses: number[] = [];
  let rests = 0;
  let next = Promise.withResolvers<void>();
  const pause = async (ms: number, signal: AbortSignal): Promise<void> => {
    pauses.push(ms);
    if (ms !== REST_MS) return;
    rests += 1;
    await Promise.race([next.promise, new Promise((end) => signal.addEventListener('abort', end))]);
  };
  const scrub = () => startScrub({ store: bare.store, folder, log, metrics, pause });
  const parts = opened.move();
  return {
    folder,
    errors,
    shown,
    pauses,
    scrub,
    bare,
    async add(bytes: Buffer | string): Promise<string> {
      const id = newId();
      const written = await files.write(id, [Buffer.from(bytes)] as never, 64 << 20);
      const row = { id, projectId: bare.projectId, kind: 'DOWNLOAD', ...written, createdAt: 0 };
      await bare.store.addBlob(row as never);
      return id;
    },
    /** Until a pass has ended, after the one before. */
    async pass(n: number): Promise<void> {
      if (n > 1) {
        const { resolve } = next;
        next = Promise.withResolvers();
        resolve();
      }
      await until(() => rests === n);
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

test('damaged and missing files are counted and logged until they are repaired', async () => {
  await using scene = await openScene();
  const ids: string[] = [];
  for (let n = 0; n < 205; n += 1) ids.push(await scene.add(`bytes of ${n}`));
  const [first = '', last = ''] = [ids[0], ids.at(-1)];
  writeFileSync(join(scene.folder, first), 'bytes of X');
  rmSync(join(scene.folder, last));
  await using _ = scene.scrub();
  await scene.pass(1);
  assert.is(scene.shown.get('tabern_blobs_damaged'), 2);
  assert.is(scene.errors.length, 2);
  for (const id of [first, last]) assert.ok(scene.errors.some((line) => line.includes(id)));
  assert.ok((scene.shown.get('tabern_blobs_scrubbed_bytes_total') ?? 0) > 203 * 'bytes of'.length);
  writeFileSync(join(scene.folder, first), 'bytes of 0');
  scene.bare.db.prepare('DELETE FROM blobs WHERE id = ?').run(last);
  await scene.pass(2);
  assert.is(scene.shown.get('tabern_blobs_damaged'), 0);
  assert.is(scene.errors.length, 2);
});

test('4 MiB take a second, and the first pass starts after a pause', async () => {
  await using scene = await openScene();
  await scene.add(Buffer.alloc(8 << 20, 1));
  await using _ = scene.scrub();
  await scene.pass(1);
  const [first, ...rest] = scene.pauses;
  assert.is(first, 600_000);
  const reading = rest.slice(0, -1).reduce((sum, ms) => sum + ms, 0);
  assert.ok(reading >= 1_990 && reading <= 2_010, `${reading}`);
  assert.ok(Math.max(...rest.slice(0, -1)) <= 250, 'little is read at once');
});

test.run();
