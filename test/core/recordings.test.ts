/** Recordings: who may bring and read them, what a project sees of them when, and their end. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../core/ids.ts';
import type { AddRecordingRequest } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { must } from '../../proto/must.ts';
import { faultOf } from '../support/fault.ts';
import { type Booted, blobParts, boot } from './boot.ts';

const test = suite('core/recordings');
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

type Run = { id: string; leaseId: string };

/** The session of an invocation that is leased. */
async function run(app: Booted, browserSettings: object = {}): Promise<Run> {
  const config = JSON.stringify({ browserSettings });
  const { sessionId: id } = await app.invoke(await app.publish({ name: newId(), config }));
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  return { id, leaseId };
}

async function end(app: Booted, { leaseId }: Run): Promise<void> {
  const wanted = { leaseId, outcome: undefined, sessionStartMs: app.clock.now() };
  await app.clients.runners.completeInvocation(wanted, app.asRunner);
}

async function write(app: Booted, leaseId: string, bytes: string): Promise<string> {
  const parts = blobParts({ kind: 'RECORDING', leaseId }, bytes);
  return (await app.clients.blobs.writeBlob(parts, app.asRunner)).blobId;
}

async function add(app: Booted, says: Partial<AddRecordingRequest>): Promise<void> {
  const rest = { pageId: 0, number: 0, startMs: 0, endMs: 0, url: 'https://a.test/' };
  const wanted = { leaseId: '', complete: false, ...rest, ...says };
  await app.clients.runners.addRecording(wanted, app.asRunner);
}

/** A start and two segments of three seconds each. */
async function bring(app: Booted, { leaseId }: Run, pageId = 0): Promise<void> {
  await add(app, { leaseId, pageId, startMs: 100, endMs: 100 });
  for (const [number, text] of ['start', 'first', 'second!'].entries()) {
    const blobId = await write(app, leaseId, text);
    const startMs = 100 + Math.max(number - 1, 0) * 3_000;
    const endMs = 100 + number * 3_000;
    await add(app, { leaseId, pageId, number, blobId, startMs, endMs, complete: number === 2 });
  }
}

const list = async (app: Booted, id: string) =>
  (await app.clients.sessions.listRecordingDownloads({ id }, app.asProject)).downloads;
const request = async (app: Booted, id: string) =>
  (await app.clients.sessions.requestRecordingDownloads({ id }, app.asProject)).downloads;
const replay = (app: Booted, id: string, pageId: string) =>
  app.clients.sessions.getReplay({ id, pageId }, app.asProject);

async function read(app: Booted, url: string, range: { offset?: number; length?: number } = {}) {
  let text = '';
  let size: number | undefined;
  for await (const part of app.clients.blobs.readBlob(
    { blobId: '', url, ...range },
    app.asGateway,
  )) {
    size ??= part.size;
    text += Buffer.from(part.chunk).toString('latin1');
  }
  return { text, size };
}

test('downloads refuse in the order of the reference', async () => {
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

test('a store that cannot be read is told as such, last of all', async () => {
  await using app = await boot();
  const one = await run(app);
  await bring(app, one);
  await end(app, one);
  assert.is((await list(app, one.id)).length, 1);
  for (const name of readdirSync(join(app.dir, 'blobs'))) rmSync(join(app.dir, 'blobs', name));
  assert.is((await faultOf(list(app, one.id))).reason, 'RECORDING_STORE');
});

test('a download is asked for, then completed with a fresh signed URL at each look', async () => {
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
  assert.equal(await request(app, one.id), await list(app, one.id)); // asked again: as it is
});

test('what is still to be encoded at the end comes later, and is PENDING until then', async () => {
  await using app = await boot();
  const one = await run(app);
  await add(app, { leaseId: one.leaseId });
  await end(app, one);
  await request(app, one.id);
  assert.is((await list(app, one.id))[0]?.status, 'PENDING');
  app.clock.advance(9 * MINUTE_MS);
  await bring(app, one);
  assert.is((await list(app, one.id))[0]?.status, 'COMPLETED');
});

test('after ten minutes nothing comes any more: what is there is all, or it has failed', async () => {
  await using app = await boot();
  const [some, none] = [await run(app), await run(app)];
  for (const { leaseId } of [some, none]) await add(app, { leaseId });
  const blobId = await write(app, some.leaseId, 'start');
  await add(app, { leaseId: some.leaseId, blobId });
  const segment = await write(app, some.leaseId, 'segment');
  await add(app, { leaseId: some.leaseId, number: 1, blobId: segment, endMs: 10 });
  for (const one of [some, none]) await end(app, one);
  for (const one of [some, none]) await request(app, one.id);
  app.clock.advance(10 * MINUTE_MS + 1);
  assert.is((await list(app, some.id))[0]?.status, 'COMPLETED');
  assert.is((await list(app, none.id))[0]?.status, 'FAILED');
  assert.is((await faultOf(write(app, some.leaseId, 'late'))).reason, 'LEASE_LOST');
  assert.is((await faultOf(add(app, { leaseId: some.leaseId }))).reason, 'LEASE_LOST');
});

test('a lease that recorded nothing brings nothing after its end', async () => {
  await using app = await boot();
  const one = await run(app);
  await end(app, one);
  assert.is((await faultOf(write(app, one.leaseId, 'late'))).reason, 'LEASE_LOST');
  assert.is((await faultOf(add(app, { leaseId: one.leaseId }))).reason, 'LEASE_LOST');
});

test('a part is added once, and a blob belongs to one', async () => {
  await using app = await boot();
  const [one, other] = [await run(app), await run(app)];
  const blobId = await write(app, one.leaseId, 'start');
  await add(app, { leaseId: one.leaseId, blobId });
  await add(app, { leaseId: one.leaseId, blobId }); // repeated
  const again = add(app, { leaseId: one.leaseId, number: 1, blobId });
  assert.is((await faultOf(again)).facts['field'], 'blobId');
  const stolen = add(app, { leaseId: other.leaseId, blobId });
  assert.is((await faultOf(stolen)).facts['field'], 'blobId');
  const bundle = add(app, { leaseId: one.leaseId, number: 1, blobId: newId() });
  assert.is((await faultOf(bundle)).facts['field'], 'blobId');
  for (const wrong of [{ pageId: 1000 }, { startMs: -1 }, { endMs: Number.NaN }]) {
    const fault = await faultOf(add(app, { leaseId: one.leaseId, ...wrong }));
    assert.is(fault.facts['field'], Object.keys(wrong)[0]);
  }
});

test('replays tell of pages with a video, and of a page the parts in order', async () => {
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

test('a whole video has its index between start and segments, and is read in ranges', async () => {
  await using app = await boot();
  const one = await run(app);
  await bring(app, one);
  await end(app, one);
  await request(app, one.id);
  const url = must((await list(app, one.id))[0]?.downloadUrl, 'a link');
  const whole = await read(app, url);
  assert.is(whole.size, whole.text.length);
  assert.ok(whole.text.startsWith('start\0\0\0'));
  assert.is(whole.text.slice(9, 13), 'sidx');
  assert.ok(whole.text.endsWith('firstsecond!'));
  for (const [offset, length] of [
    [0, 5],
    [3, 10],
    [60, 8],
    [whole.text.length - 3, 3],
    [5, 0],
  ] as const) {
    const part = await read(app, url, { offset, length });
    assert.equal(part, { text: whole.text.slice(offset, offset + length), size: whole.size });
  }
  const past = read(app, url, { offset: whole.text.length + 1 });
  assert.is((await faultOf(past)).facts['field'], 'offset');
});

test('a link opens what it names, for six hours, and nothing else', async () => {
  await using app = await boot();
  const one = await run(app);
  await bring(app, one);
  const { initUrl, segments } = await replay(app, one.id, '0');
  const other = initUrl.replace('/0/0.mp4', '/0/1.m4s');
  assert.is((await faultOf(read(app, other))).reason, 'URL_SIGNATURE_INVALID');
  const [segment] = segments;
  assert.is((await read(app, must(segment, 'segment').url)).text, 'first');
  app.clock.advance(6 * 3_600_000);
  assert.is((await faultOf(read(app, initUrl))).reason, 'URL_EXPIRED');
});

test('requests and playlists have a rate a project, and say when to come again', async () => {
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

test.run();
