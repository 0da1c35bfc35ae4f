/** Recordings: access of runners and projects, states of downloads, retention. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../../core/common/ids.ts';
import { must } from '../../../../proto/common/must.ts';
import type { PageRecording } from '../../../../proto/gen/tabern/v1/runners.pb.ts';
import { addRecording } from '../../../support/core/reports.ts';
import { faultOf } from '../../../support/fault.ts';
import { type Booted, blobParts, boot } from '../../boot.ts';
import {
  add,
  bring,
  end,
  list,
  newOf,
  partOf,
  read,
  replay,
  request,
  run,
  write,
} from './recorded.ts';

const test = suite('core/sessions/recordings/recordings');
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

test('downloads refuse in the order of proto/spec/sessions.md', async () => {
  await using app = await boot();
  const refusal = async (id: string) => {
    const [listed, requested] = [await faultOf(list(app, id)), await faultOf(request(app, id))];
    if (requested.reason !== 'RATE_LIMIT') assert.is(listed.reason, requested.reason);
    return listed.reason;
  };
  assert.is(await refusal(newId()), 'RESOURCE_NOT_FOUND');
  assert.is(await refusal('x'), 'INVALID_FIELD');
  assert.is(await refusal((await run(app, { recordSession: false })).id), 'RECORDING_DISABLED');
  const one = await run(app);
  assert.is(await refusal(one.id), 'SESSION_NOT_ENDED');
  await end(app, one);
  assert.is(await refusal(one.id), 'RESOURCE_NOT_FOUND');
  app.clock.advance(31 * DAY_MS);
  assert.is(await refusal(one.id), 'RESOURCE_NOT_FOUND');
  app.clock.advance(1);
  assert.is(await refusal(one.id), 'RECORDING_EXPIRED');
});

test('an unreadable file is RECORDING_STORE, checked last', async () => {
  await using app = await boot();
  const one = await run(app);
  await bring(app, one);
  await end(app, one);
  assert.is((await list(app, one.id)).length, 1);
  for (const name of readdirSync(join(app.dir, 'blobs'))) rmSync(join(app.dir, 'blobs', name));
  assert.is((await faultOf(list(app, one.id))).reason, 'RECORDING_STORE');
});

test('a requested download is completed with a new signed URL at each read', async () => {
  await using app = await boot();
  const one = await run(app);
  await bring(app, one);
  await bring(app, one, 1);
  await end(app, one);
  const none = { downloadUrl: undefined, completedAt: undefined };
  assert.equal(await list(app, one.id), [
    { pageId: '0', status: 'NOT_REQUESTED', ...none },
    { pageId: '1', status: 'NOT_REQUESTED', ...none },
  ]);
  assert.equal(
    (await request(app, one.id)).map(({ status }) => status),
    ['PENDING', 'PENDING'],
  );
  const [first] = await list(app, one.id);
  assert.is(first?.status, 'COMPLETED');
  assert.is(first?.completedAt?.getTime(), app.clock.now());
  app.clock.advance(1_000);
  const [later] = await list(app, one.id);
  assert.is.not(later?.downloadUrl, first?.downloadUrl);
  assert.equal(later?.completedAt, first?.completedAt);
  assert.equal(await request(app, one.id), await list(app, one.id)); // idempotent
});

test('a recording is PENDING until parts that are encoded after the end are added', async () => {
  await using app = await boot();
  const one = await run(app);
  await add(app, { leaseId: one.leaseId });
  await end(app, one);
  await request(app, one.id);
  assert.is((await list(app, one.id))[0]?.status, 'PENDING');
  app.clock.advance(9 * MINUTE_MS);
  await bring(app, one);
  assert.is((await list(app, one.id))[0]?.status, 'COMPLETED');
  const parts = blobParts({ kind: 'DOWNLOAD', leaseId: one.leaseId }, 'late');
  const fault = await faultOf(app.clients.blobs.writeBlob(parts, app.asRunner));
  assert.is(fault.reason, 'LEASE_LOST', 'no other file');
});

test('ten minutes after the end a download is COMPLETED or FAILED', async () => {
  await using app = await boot();
  const [some, none] = [await run(app), await run(app)];
  for (const { leaseId } of [some, none]) await add(app, { leaseId });
  const start = partOf(await write(app, some.leaseId, 'start'));
  const segment = partOf(await write(app, some.leaseId, 'segment'), 1, 10);
  await add(app, { leaseId: some.leaseId, parts: [start, segment], endMs: 10 });
  for (const one of [some, none]) await end(app, one);
  for (const one of [some, none]) await request(app, one.id);
  app.clock.advance(10 * MINUTE_MS + 1);
  assert.is((await list(app, some.id))[0]?.status, 'COMPLETED');
  assert.is((await list(app, none.id))[0]?.status, 'FAILED');
  assert.is((await faultOf(write(app, some.leaseId, 'late'))).reason, 'LEASE_LOST');
  assert.is((await faultOf(add(app, { leaseId: some.leaseId }))).reason, 'LEASE_LOST');
});

test('a lease without a recording cannot add parts after its end', async () => {
  await using app = await boot();
  const one = await run(app);
  await end(app, one);
  assert.is((await faultOf(write(app, one.leaseId, 'late'))).reason, 'LEASE_LOST');
  assert.is((await faultOf(add(app, { leaseId: one.leaseId }))).reason, 'LEASE_LOST');
});

test('a part is added once, and its bytes belong to one part', async () => {
  await using app = await boot();
  const [one, other] = [await run(app), await run(app)];
  const receipt = await write(app, one.leaseId, 'start');
  const add = (says: Partial<PageRecording>) =>
    addRecording(app, newOf({ leaseId: one.leaseId, ...says }));
  await add({ parts: [partOf(receipt)] });
  await add({ parts: [partOf(receipt)] }); // repeated
  const twice = partOf(await write(app, one.leaseId, 'twice'), 2);
  for (const parts of [
    [partOf(receipt, 1)],
    [partOf('')],
    [partOf(`${receipt.slice(0, -2)}aa`)],
    [twice, { ...twice, number: 3 }],
    Array(11).fill(twice),
  ]) {
    assert.is((await faultOf(add({ parts }))).reason, 'INVALID_FIELD');
  }
  const stolen = add({ leaseId: other.leaseId, parts: [partOf(receipt)] });
  assert.match((await faultOf(stolen)).message, '`receipt` must be of bytes');
  assert.is((await faultOf(add({ pageId: 1, parts: [partOf(receipt)] }))).reason, 'INVALID_FIELD');
  for (const wrong of [{ pageId: 1000 }, { startMs: -1 }, { endMs: Number.NaN }]) {
    const fault = await faultOf(add(wrong));
    assert.match(fault.message, `\`${Object.keys(wrong)[0]}\``);
  }
  await add({ parts: [twice], complete: true });
  assert.equal(await partsOf(app, one.id), [0, 2]);
});

test('a runner of an earlier release adds blobs that have rows', async () => {
  await using app = await boot();
  const [one, other] = [await run(app), await run(app)];
  const { blobs, runners } = app.clients;
  const write = async (text: string) => {
    const parts = blobParts({ kind: 'RECORDING', leaseId: one.leaseId }, text);
    const { blobId, receipt } = await blobs.writeBlob(parts, app.asRunner);
    assert.is(receipt, undefined);
    return blobId;
  };
  const add = (says: object) => {
    const usual = { pageId: 0, number: 0, startMs: 0, endMs: 0, url: 'https://a.test/' };
    const wanted = { leaseId: one.leaseId, complete: false, ...usual, ...says };
    return runners.addRecording(wanted, app.asRunner);
  };
  const blobId = await write('start');
  await add({});
  await add({ blobId });
  await add({ blobId }); // repeated
  await add({ blobId: await write('segment'), number: 1, endMs: 10, complete: true });
  for (const wrong of [
    { number: 1, blobId },
    { leaseId: other.leaseId, blobId },
    { number: 1, blobId: newId() },
    { number: 1, blobId: await app.upload('archive') },
  ]) {
    assert.is((await faultOf(add(wrong))).facts['field'], 'blobId');
  }
  for (const wrong of [{ pageId: 1000 }, { startMs: -1 }, { endMs: Number.NaN }]) {
    assert.is((await faultOf(add(wrong))).facts['field'], Object.keys(wrong)[0]);
  }
  assert.equal(await partsOf(app, one.id), [0, 1]);
  await end(app, one);
  await request(app, one.id);
  const [made] = await list(app, one.id);
  assert.is((await read(app, must(made?.downloadUrl, 'a link'))).text.slice(-7), 'segment');
});

test('replays list pages with a video, and the parts of a page in order', async () => {
  await using app = await boot();
  const one = await run(app);
  const { sessions } = app.clients;
  const pages = async () => sessions.listReplays({ id: one.id }, app.asProject);
  await add(app, { leaseId: one.leaseId, pageId: 1 }); // begun, nothing there
  assert.equal(await pages(), { pages: [], pageCount: 0 });
  await bring(app, one);
  const url = 'https://a.test/';
  const shown = { pageId: '0', url, startTimeMs: 100, endTimeMs: 6_100 };
  assert.equal(await pages(), { pages: [shown], pageCount: 1 });
  const made = await replay(app, one.id, '0');
  assert.equal(
    made.segments.map(({ duration }) => duration),
    [3, 3],
  );
  assert.is(made.live, false);
  assert.is((await read(app, made.initUrl)).text, 'start');
  assert.is((await read(app, must(made.segments[1], 'segment').url)).text, 'second!');
  assert.is((await faultOf(replay(app, one.id, '1'))).message, 'Replay not found.');
  assert.is((await faultOf(replay(app, one.id, '7'))).message, 'Replay not found.');
  assert.is((await faultOf(replay(app, one.id, '-1'))).reason, 'INVALID_FIELD');
  assert.is((await faultOf(replay(app, newId(), '0'))).message, 'Session not found.');
  assert.equal((await sessions.getRecording({ id: one.id }, app.asProject)).events, []);
});

test('requests and playlists have a rate limit per project with a retry delay', async () => {
  await using app = await boot();
  const one = await run(app);
  await bring(app, one);
  await end(app, one);
  for (let count = 0; count < 5; count += 1) await request(app, one.id);
  app.clock.advance(20_000);
  const fault = await faultOf(request(app, one.id));
  assert.is(fault.reason, 'RATE_LIMIT');
  assert.equal(fault.facts, { limit: 5, current: 5, retryAfterS: 40 });
  app.clock.advance(40_000);
  await request(app, one.id);
  for (let count = 0; count < 120; count += 1) await replay(app, one.id, '0');
  assert.is((await faultOf(replay(app, one.id, '0'))).reason, 'RATE_LIMIT');
});

test('playlists of shared sessions leave those of the project', async () => {
  await using app = await boot();
  const one = await run(app);
  await bring(app, one);
  await end(app, one);
  const { consoleShares } = app.clients;
  const wanted = { id: one.id, expiresIn: 60, hasLog: false };
  const { url } = await consoleShares.createSessionShare(wanted, app.asProject);
  const asHolder = { metadata: { 'x-console-share': url.split('#')[1] ?? '' } };
  const shared = () => consoleShares.getSharedReplay({ pageId: '0' }, asHolder);
  for (let count = 0; count < 120; count += 1) await shared();
  assert.is((await faultOf(shared())).reason, 'RATE_LIMIT');
  await replay(app, one.id, '0');
});

/** Numbers of the parts of the first page. */
async function partsOf(app: Booted, id: string): Promise<number[]> {
  const { initUrl, segments } = await replay(app, id, '0');
  return [initUrl, ...segments.map(({ url }) => url)].map((url) =>
    Number(/(\d+)\.\w+\?/.exec(url)?.[1]),
  );
}

test.run();
