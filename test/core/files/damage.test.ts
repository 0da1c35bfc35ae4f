/** A file that rots on the disk is never handed out as whole: the answer is cut, and logged. */
import { openSync, readdirSync, readFileSync, rmSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import { faultOf } from '../../support/fault.ts';
import { type Booted, boot } from '../boot.ts';
import {
  bring,
  end,
  list,
  read as readRecording,
  request,
  run,
} from '../sessions/recordings/recorded.ts';

const test = suite('core/files/damage');
/** Several messages of ReadBlob. */
const LARGE = 'abc'.repeat(100_000);

/** One bit of the file, at that byte. */
function rot(app: Booted, id: string, at: number): void {
  const fd = openSync(join(app.dir, 'blobs', id), 'r+');
  writeSync(fd, Uint8Array.of(0xff), 0, 1, at);
}

/** The chunks before the end, and the error of the end. */
async function read(app: Booted, blobId: string, options: CallOptions) {
  let bytes = 0;
  try {
    for await (const { chunk } of app.clients.blobs.readBlob({ blobId }, options)) {
      bytes += chunk.length;
    }
    return { bytes, reason: undefined };
  } catch (error) {
    return { bytes, reason: error instanceof Fault ? error.reason : String(error) };
  }
}

test('a damaged small file yields no byte, a large one not its last chunk', async () => {
  await using app = await boot();
  const [small, large] = [await app.upload('some bytes'), await app.upload(LARGE)];
  assert.equal(await read(app, large, app.asRunner), { bytes: LARGE.length, reason: undefined });
  rot(app, small, 3);
  rot(app, large, 7);
  for (const who of [app.asProject, app.asRunner]) {
    assert.equal(await read(app, small, who), { bytes: 0, reason: 'DATA_CORRUPT' });
    const cut = await read(app, large, who);
    assert.is(cut.reason, 'DATA_CORRUPT');
    assert.ok(cut.bytes < LARGE.length, `${cut.bytes}`);
  }
  assert.ok(app.logged.some((line) => line.includes('DATA_CORRUPT') && line.includes(small)));
});

test('a truncated, longer or missing file is damaged, too', async () => {
  await using app = await boot();
  const id = await app.upload(LARGE);
  truncateSync(join(app.dir, 'blobs', id), LARGE.length - 1);
  assert.is((await read(app, id, app.asRunner)).reason, 'DATA_CORRUPT');
  rot(app, id, LARGE.length + 5);
  assert.is((await read(app, id, app.asRunner)).reason, 'DATA_CORRUPT');
  rmSync(join(app.dir, 'blobs', id));
  assert.equal(await read(app, id, app.asRunner), { bytes: 0, reason: 'DATA_CORRUPT' });
});

test('a damaged part of a recording yields no range', async () => {
  await using app = await boot();
  const one = await run(app);
  await bring(app, one);
  await end(app, one);
  await request(app, one.id);
  const url = must((await list(app, one.id))[0]?.downloadUrl, 'a link');
  const { size } = await readRecording(app, url, { length: 0 });
  const folder = join(app.dir, 'blobs');
  const last = readdirSync(folder).find(
    (id) => readFileSync(join(folder, id), 'utf8') === 'second!',
  );
  rot(app, must(last, 'the last segment'), 2);
  const offset = must(size, 'size') - 2; // of the bytes that are still right
  assert.is((await faultOf(readRecording(app, url, { offset, length: 2 }))).reason, 'DATA_CORRUPT');
  assert.is((await readRecording(app, url, { offset: 0, length: 5 })).text, 'start');
});

test.run();
