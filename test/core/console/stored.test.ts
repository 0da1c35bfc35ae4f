/** The console's lists of contexts, downloads and extensions. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { callerOf } from '../../support/core/bare-store.ts';
import { faultOf } from '../../support/fault.ts';
import { ANY, addSessions, FIRST_MS, idOf, type Lists, openLists, SESSION } from './projects.ts';

const test = suite('core/console/stored');

const PAGE = { text: undefined, limit: undefined, cursor: undefined };

function addBlob({ db }: Lists, projectId: string, kind: string): string {
  const id = newId();
  db.exec(`INSERT INTO blobs (id, project_id, kind, size, sha256, created_at)
    VALUES ('${id}', '${projectId}', '${kind}', 7, 'ab', 0)`);
  return id;
}

/** `n`: seconds after the first. */
function addContext(lists: Lists, n: number, { name = `login ${n}`, status = 'active' } = {}) {
  const { db, projectId } = lists;
  db.exec(`INSERT INTO contexts (id, project_id, name, name_key, status, key_pair_id, public_key,
      created_at, updated_at)
    VALUES ('${idOf('01930000', n)}', '${projectId}', '${name}', '${name}', '${status}', 'k', 'p',
      ${FIRST_MS} + ${n} * 1000, 0)`);
  return idOf('01930000', n);
}

function addDownload(lists: Lists, n: number, filename: string) {
  const { db, projectId } = lists;
  const blobId = addBlob(lists, projectId, 'DOWNLOAD');
  db.exec(`INSERT INTO downloads (id, session_id, project_id, blob_id, filename, mime_type, size,
      sha256, created_at)
    VALUES ('${idOf('01940000', n)}', '${idOf(SESSION, n % 2)}', '${projectId}', '${blobId}',
      '${filename}', 'text/plain', 7, 'ab', ${FIRST_MS} + ${n} * 1000)`);
}

function addExtension(lists: Lists, n: number) {
  const { db, projectId } = lists;
  const blobId = addBlob(lists, projectId, 'EXTENSION');
  db.exec(`INSERT INTO extensions (id, project_id, blob_id, file_name, created_at, updated_at)
    VALUES ('${idOf('01950000', n)}', '${projectId}', '${blobId}', '${n}.zip',
      ${FIRST_MS} + ${n} * 1000, 0)`);
}

test('contexts are listed page by page, newest first, without deleted ones', async () => {
  await using lists = openLists();
  const { console, caller } = lists;
  for (let n = 0; n < 5; n += 1) addContext(lists, n);
  addContext(lists, 9, { status: 'deleted' });
  const first = await console.listContexts({ ...PAGE, limit: 3 }, caller);
  assert.equal(
    first.contexts.map(({ name }) => name),
    ['login 4', 'login 3', 'login 2'],
  );
  const { nextCursor: cursor } = first;
  const second = await console.listContexts({ ...PAGE, limit: 3, cursor }, caller);
  assert.equal(
    second.contexts.map(({ name }) => name),
    ['login 1', 'login 0'],
  );
  assert.is(second.nextCursor, undefined);
  const found = await console.listContexts({ ...PAGE, text: 'GIN 3' }, caller);
  assert.is(found.contexts.length, 1);
  const stranger = callerOf(await lists.addProject('other'));
  assert.equal((await console.listContexts(PAGE, stranger)).contexts, []);
  const foreign = await faultOf(console.listContexts({ ...PAGE, cursor }, stranger));
  assert.is(foreign.reason, 'INVALID_CURSOR');
});

test('a context has its content, its saves, and its open sessions, 4 at most', async () => {
  await using lists = openLists();
  const { console, caller, db, projectId } = lists;
  const id = addContext(lists, 1);
  const read = async () => (await console.listContexts(PAGE, caller)).contexts[0];
  const empty = await read();
  assert.equal(
    [empty?.size, empty?.savedAt, empty?.saves, empty?.sessionIds],
    [...[undefined, undefined, 0, []]],
  );
  const blobId = addBlob(lists, projectId, 'CONTEXT');
  addSessions(lists, projectId, 8);
  db.exec(`
    UPDATE contexts SET blob_id = '${blobId}', saved_at = ${FIRST_MS}, save_seq = 3,
      saved_by = '${idOf(SESSION, 1)}';
    UPDATE sessions SET context_id = '${id}', status = IIF(id < '${idOf(SESSION, 2)}', 'COMPLETED',
      'RUNNING')`);
  const saved = await read();
  assert.equal(
    [saved?.size, saved?.savedAt?.getTime(), saved?.saves, saved?.savedBy],
    [7, FIRST_MS, 3, idOf(SESSION, 1)],
  );
  assert.equal(
    saved?.sessionIds,
    [7, 6, 5, 4].map((n) => idOf(SESSION, n)),
  );
});

test('downloads of all sessions are listed, by session, name and time', async () => {
  await using lists = openLists();
  const { console, caller, projectId } = lists;
  addSessions(lists, projectId, 2);
  for (const [n, name] of ['invoice.pdf', 'report.csv', 'INVOICE-2.pdf'].entries()) {
    addDownload(lists, n, name);
  }
  const names = async (filter: object) => {
    const wanted = { ...ANY, ...PAGE, sessionId: undefined, ...filter };
    return (await console.listDownloads(wanted, caller)).downloads.map((one) => one.filename);
  };
  assert.equal(await names({}), ['INVOICE-2.pdf', 'report.csv', 'invoice.pdf']);
  assert.equal(await names({ text: 'invoice' }), ['INVOICE-2.pdf', 'invoice.pdf']);
  assert.equal(await names({ sessionId: idOf(SESSION, 1) }), ['report.csv']);
  assert.equal(await names({ from: new Date(FIRST_MS + 1_000), to: new Date(FIRST_MS + 2_000) }), [
    'report.csv',
  ]);
  const { results } = await console.search({ q: 'invoice' }, caller);
  assert.equal(
    results.map(({ kind, text }) => `${kind} ${text}`),
    ['DOWNLOADS INVOICE-2.pdf', 'DOWNLOADS invoice.pdf'],
  );
  const wrong = { ...ANY, ...PAGE, sessionId: 'x' };
  assert.is((await faultOf(console.listDownloads(wrong, caller))).facts['field'], 'sessionId');
});

test('extensions are listed with their size, without deleted ones', async () => {
  await using lists = openLists();
  const { console, caller, db } = lists;
  for (let n = 0; n < 3; n += 1) addExtension(lists, n);
  db.exec(`UPDATE extensions SET deleted_at = 1 WHERE file_name = '1.zip'`);
  const { extensions, nextCursor } = await console.listExtensions(PAGE, caller);
  assert.equal(
    extensions.map(({ fileName, size }) => [fileName, size]),
    [
      ['2.zip', 7],
      ['0.zip', 7],
    ],
  );
  assert.is(nextCursor, undefined);
});

test.run();
