/**
 * Downloads: added under a lease, listed by filter, removed when deleted or old.
 * proto/spec/sessions.md 9.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { cleanName } from '../../../core/files/downloads.ts';
import type { Store } from '../../../core/store/types.ts';
import { must } from '../../../proto/common/must.ts';
import type { ListDownloadsRequest } from '../../../proto/gen/tabern/v1/downloads.pb.ts';
import { purgeAt } from '../../support/core/retention.ts';
import { faultOf } from '../../support/fault.ts';
import { blobParts, boot } from '../boot.ts';

const test = suite('core/files/downloads');
const DAY = 86_400_000;

const NAMES: [said: string, kept: string][] = [
  ['report.pdf', 'report.pdf'],
  ['../../etc/passwd', 'passwd'],
  ['C:\\windows\\x.exe', 'x.exe'],
  [' a\u0000\u001b[31m.txt ', 'a[31m.txt'],
  ['photo\u202Egpj.exe', 'photogpj.exe'],
  ['\ud800.txt', '\ufffd.txt'],
  ['', 'download'],
  ['..', 'download'],
  ['a/', 'download'],
  ['漢字.tar.gz', '漢字.tar.gz'],
  [`${'ü'.repeat(300)}.pdf`, `${'ü'.repeat(196)}.pdf`],
  [`a.${'x'.repeat(300)}`, `a.${'x'.repeat(198)}`],
];

test('a name suggested by a page becomes a plain file name', () => {
  for (const [said, kept] of NAMES) assert.is(cleanName(said), kept, said);
});

/** A core with one running invocation, whose session downloads. */
async function openRun() {
  const app = await boot();
  const { clients, asProject, asRunner } = app;
  const functionId = await app.publish({ name: 'f' });
  const { sessionId } = await app.invoke(functionId);
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  const write = async (bytes: string, kind: 'DOWNLOAD' | 'RECORDING' = 'DOWNLOAD') =>
    (await clients.blobs.writeBlob(blobParts({ kind, leaseId }, bytes), asRunner)).blobId;
  const list = (more: Partial<ListDownloadsRequest> = {}) =>
    clients.downloads.listDownloads(
      { sessionId, createdAfter: undefined, createdBefore: undefined, ...more },
      asProject,
    );
  return {
    ...app,
    sessionId,
    leaseId,
    write,
    list,
    async add(filename: string, bytes: string) {
      const blobId = await write(bytes);
      await clients.runners.addDownload({ leaseId, blobId, filename }, asRunner);
      return blobId;
    },
    async names(more: Partial<ListDownloadsRequest> = {}) {
      return (await list(more)).downloads.map(({ filename }) => filename);
    },
  };
}

test('added downloads are listed once, newest first, with their hash', async () => {
  await using app = await openRun();
  const blobId = await app.add('a.pdf', 'hello');
  app.clock.advance(1_000);
  await app.add('dir/b.unknown', '');
  const again = { leaseId: app.leaseId, blobId, filename: 'again' };
  await app.clients.runners.addDownload(again, app.asRunner);
  const { downloads, total, limit, offset } = await app.list();
  assert.equal([total, limit, offset], [2, 20, 0]);
  const rows = downloads.map(({ filename, mimeType, size, checksum }) => {
    return [filename, mimeType, size, checksum.slice(0, 8)];
  });
  assert.equal(rows, [
    ['b.unknown', 'application/octet-stream', 0, 'e3b0c442'],
    ['a.pdf', 'application/pdf', 5, '2cf24dba'],
  ]);
  const { id } = must(downloads[1], 'download');
  const got = await app.clients.downloads.getDownload({ id: id.toUpperCase() }, app.asProject);
  assert.equal([got.download?.filename, got.blobId], ['a.pdf', blobId]);
});

test('each filter selects matching downloads, bounds included', async () => {
  await using app = await openRun();
  const start = app.clock.now();
  for (const [name, bytes] of [
    ['a.csv', 'x'],
    ['b.csv', 'xx'],
    ['c.txt', 'xxx'],
  ] as const) {
    await app.add(name, bytes);
    app.clock.advance(1_000);
  }
  const at = (seconds: number) => new Date(start + seconds * 1_000);
  const cases: [Partial<ListDownloadsRequest>, string[]][] = [
    [{}, ['c.txt', 'b.csv', 'a.csv']],
    [{ filename: 'b.csv' }, ['b.csv']],
    [{ filename: 'b' }, []],
    [{ mimeType: 'text/csv' }, ['b.csv', 'a.csv']],
    [{ minSize: 2 }, ['c.txt', 'b.csv']],
    [{ maxSize: 2 }, ['b.csv', 'a.csv']],
    [{ minSize: 2, maxSize: 2 }, ['b.csv']],
    [{ createdAfter: at(1) }, ['c.txt', 'b.csv']],
    [{ createdBefore: at(1) }, ['b.csv', 'a.csv']],
    [{ mimeType: 'text/csv', minSize: 2, createdAfter: at(0) }, ['b.csv']],
    [{ limit: 1 }, ['c.txt']],
    [{ limit: 1, offset: 2 }, ['a.csv']],
    [{ offset: 3 }, []],
  ];
  for (const [filter, names] of cases) {
    assert.equal(await app.names(filter), names, JSON.stringify(filter));
  }
  assert.is((await app.list({ limit: 1, mimeType: 'text/csv' })).total, 2);
});

test('values out of range, and unknown or foreign sessions, are refused', async () => {
  await using app = await openRun();
  const cases: [Partial<ListDownloadsRequest>, number, string][] = [
    [{ sessionId: '' }, 400, '`sessionId` is required.'],
    [{ sessionId: 'x' }, 400, '`sessionId` must be a UUID.'],
    [{ sessionId: crypto.randomUUID() }, 404, 'Session not found.'],
    [{ filename: 'x'.repeat(256) }, 400, '`filename` must be at most 255 characters.'],
    [{ mimeType: 'x'.repeat(256) }, 400, '`mimeType` must be at most 255 characters.'],
    [{ minSize: -1 }, 400, '`minSize` must be 0 or more.'],
    [{ maxSize: Number.NaN }, 400, '`maxSize` must be 0 or more.'],
    [{ limit: 0 }, 400, '`limit` must be 1 to 100.'],
    [{ limit: 101 }, 400, '`limit` must be 1 to 100.'],
  ];
  for (const [request, status, message] of cases) {
    const fault = await faultOf(app.list(request));
    assert.equal([fault.row.http, fault.message], [status, message]);
  }
  const { downloads } = app.clients;
  for (const call of [downloads.getDownload, downloads.deleteDownload]) {
    assert.is((await faultOf(call({ id: 'x' }, app.asProject) as Promise<unknown>)).row.http, 400);
    const unknown = { id: crypto.randomUUID() };
    assert.is((await faultOf(call(unknown, app.asProject) as Promise<unknown>)).row.http, 404);
  }
});

test('only a blob of the lease may become a download', async () => {
  await using app = await openRun();
  const { runners } = app.clients;
  const add = (leaseId: string, blobId: string) =>
    faultOf(runners.addDownload({ leaseId, blobId, filename: 'a' }, app.asRunner));
  const recording = await app.write('x', 'RECORDING');
  assert.is((await add(app.leaseId, recording)).reason, 'INVALID_FIELD');
  assert.is((await add(app.leaseId, crypto.randomUUID())).reason, 'INVALID_FIELD');
  const blobId = await app.write('x');
  assert.is((await add(crypto.randomUUID(), blobId)).reason, 'LEASE_LOST');
  const end = { leaseId: app.leaseId, outcome: undefined, sessionStartMs: 0, steps: [] };
  await runners.completeInvocation(end, app.asRunner);
  assert.is((await add(app.leaseId, blobId)).reason, 'LEASE_LOST');
  assert.equal(await app.names(), []);
});

test('deleting a download removes its file', async () => {
  await using app = await openRun();
  const blobs = [await app.add('a', 'a'), await app.add('b', 'b'), await app.add('c', 'c')];
  const isThere = () => blobs.map((id) => existsSync(join(app.dir, 'blobs', id)));
  const [newest] = (await app.list()).downloads;
  const { downloads } = app.clients;
  await downloads.deleteDownload({ id: must(newest, 'download').id }, app.asProject);
  assert.equal(
    [await app.names(), isThere()],
    [
      ['b', 'a'],
      [true, true, false],
    ],
  );
  await downloads.deleteSessionDownloads({ sessionId: app.sessionId }, app.asProject);
  assert.equal([await app.names(), isThere()], [[], [false, false, false]]);
  await downloads.deleteSessionDownloads({ sessionId: app.sessionId }, app.asProject);
  const other = { sessionId: crypto.randomUUID() };
  const fault = await faultOf(downloads.deleteSessionDownloads(other, app.asProject));
  assert.is(fault.row.http, 404);
});

test('retention removes the oldest downloads', async () => {
  const removed: string[] = [];
  const asked: number[] = [];
  const left = [['b1', 'b2'], []];
  const store: Partial<Store> = {
    async purgeDownloads({ before }) {
      asked.push(before);
      return left.shift() ?? [];
    },
    purgeExtensions: async () => ['e1'],
  };
  const remove = async (id: string) => void removed.push(id);
  await purgeAt(40 * DAY, ['downloads', 'extensions'], { store, remove });
  assert.equal([asked, removed], [[10 * DAY], ['b1', 'b2', 'e1']]);
});

test.run();
