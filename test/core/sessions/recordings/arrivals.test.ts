/** What becomes of the bytes of a part between their upload and the runner's report. */
import { readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startCore } from '../../../../core/main.ts';
import { openLog } from '../../../../proto/common/log.ts';
import { must } from '../../../../proto/common/must.ts';
import { storeBlob } from '../../../../proto/uploads/direct.ts';
import { addRecording } from '../../../support/core/reports.ts';
import { faultOf } from '../../../support/fault.ts';
import { startS3 } from '../../../support/servers/s3.ts';
import { type Booted, blobParts, boot, configOn } from '../../boot.ts';
import { add, newOf, partOf, read, replay, run, write } from './recorded.ts';

const test = suite('core/sessions/recordings/arrivals');
const log = openLog({ role: 'core', level: 'silent' });
const HOUR_MS = 3_600_000;

const stored = (app: Booted) => readdirSync(join(app.dir, 'blobs'));

/** The next core on the same data, whose start sweeps; files are older by that much. */
async function restart(app: Booted, agedMs: number) {
  await app.core.close();
  const at = new Date(Date.now() - agedMs);
  for (const name of stored(app)) utimesSync(join(app.dir, 'blobs', name), at, at);
  return await startCore(configOn(app.dir), log, { now: app.clock.now });
}

test('a sweep leaves bytes whose report is on the way, and any core accepts it', async () => {
  await using app = await boot();
  const one = await run(app);
  const parts = [partOf(await write(app, one.leaseId, 'start'))];
  parts.push(partOf(await write(app, one.leaseId, 'segment'), 1, 10));
  // as old as the bytes of a receipt may be
  await using next = await restart(app, HOUR_MS - 60_000);
  const core = { clients: next.clients, asRunner: app.asRunner };
  await addRecording(core, newOf({ leaseId: one.leaseId, parts, endMs: 10 }));
  const made = await next.clients.sessions.getReplay({ id: one.id, pageId: '0' }, app.asProject);
  assert.is((await read({ ...app, clients: next.clients }, made.initUrl)).text, 'start');
});

test('bytes whose runner ended before its report are removed after an hour', async () => {
  await using app = await boot();
  const one = await run(app);
  const kept = stored(app);
  const receipt = await write(app, one.leaseId, 'start');
  assert.is(stored(app).length, kept.length + 1);
  await using next = await restart(app, HOUR_MS);
  assert.equal(stored(app), kept);
  // by then the receipt has expired
  app.clock.advance(900_000);
  const late = newOf({ leaseId: one.leaseId, parts: [partOf(receipt)] });
  const fault = await faultOf(
    addRecording({ clients: next.clients, asRunner: app.asRunner }, late),
  );
  assert.match(fault.message, '`receipt` must be of bytes that were stored under this lease');
});

test('a report beyond the quota is refused, and a repeated one is not', async () => {
  await using app = await boot({ TABERN_RECORDING_MIB: '1' });
  const one = await run(app);
  const { leaseId } = one;
  const half = 'x'.repeat((1 << 20) / 2 + 1);
  const [first, second] = [await write(app, leaseId, half), await write(app, leaseId, half)];
  await add(app, { leaseId, parts: [partOf(first)] });
  const fault = await faultOf(add(app, { leaseId, parts: [partOf(second, 1)] }));
  assert.is(fault.reason, 'QUOTA_EXCEEDED');
  assert.match(fault.message, "The project's quota `recordingMib` (1 MiB) is used up.");
  await add(app, { leaseId, parts: [partOf(first)] }); // a repeated one needs no room
  const refused = await faultOf(write(app, leaseId, half));
  assert.is(refused.reason, 'QUOTA_EXCEEDED', 'before the bytes are stored');
});

test('only a runner has receipts, of recordings', async () => {
  await using app = await boot();
  const { leaseId } = await run(app);
  const { blobs } = app.clients;
  for (const [kind, call] of [
    ['DOWNLOAD', app.asRunner],
    ['BUILD_ARCHIVE', app.asProject],
  ] as const) {
    const parts = blobParts({ kind, leaseId, reported: true }, 'bytes');
    assert.is((await faultOf(blobs.writeBlob(parts, call))).facts['field'], 'reported');
    const begun = blobs.beginUpload({ header: { kind, leaseId, reported: true } }, call);
    // without a bucket nothing begins
    assert.is((await begun).upload, undefined);
  }
  const asProject = blobParts({ kind: 'RECORDING', leaseId, reported: true }, 'bytes');
  assert.is((await faultOf(blobs.writeBlob(asProject, app.asProject))).reason, 'INVALID_FIELD');
});

test('parts in a bucket are reported by the receipts of their uploads', async () => {
  await using server = await startS3();
  const place = await server.bucket();
  await using app = await boot(server.settings(place));
  const { id, leaseId } = await run(app);
  const send = async (text: string) => {
    async function* bytes() {
      yield Buffer.from(text);
    }
    const writeBlob = () => Promise.reject(new Error('the bytes went through core'));
    const blobs = { ...app.clients.blobs, writeBlob };
    const header = { kind: 'RECORDING', leaseId, reported: true } as const;
    const how = { ...app.asRunner, retryMs: 60_000 };
    const { receipt } = await storeBlob(blobs, { header, bytes: bytes() }, how);
    return must(receipt, 'a receipt');
  };
  const parts = [partOf(await send('start')), partOf(await send('segment'), 1, 10)];
  for (let n = 0; n < 2; n += 1) await add(app, { leaseId, parts, endMs: 10 });
  const { initUrl, segments } = await replay(app, id, '0');
  assert.is(segments.length, 1);
  assert.is((await read(app, initUrl)).text, 'start');
  assert.is((await read(app, must(segments[0], 'a segment').url)).text, 'segment');
  const wrong = { kind: 'DOWNLOAD', leaseId, reported: true } as const;
  const begun = app.clients.blobs.beginUpload({ header: wrong }, app.asRunner);
  assert.is((await faultOf(begun)).facts['field'], 'reported');
});

test.run();
