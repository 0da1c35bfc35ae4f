/** The bytes of one download by a link of the console. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { CreateSessionRequest } from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import { blobParts } from '../../core/boot.ts';
import { type Console, openConsole } from './console.ts';

const test = suite('gateway/console/downloads');

/** The name would be markup, and its bytes a page of this origin, if they were rendered. */
const NAME = '<img src=x onerror=alert(1)>.html';
const BYTES = '<script>alert(1)</script>';

async function openDownload({ app }: Console): Promise<string> {
  const { clients, asRunner, asProject } = app;
  const creating = clients.sessions.createSession(CreateSessionRequest.create(), asProject);
  const { leaseId } = must((await app.lease('SESSION', 25_000))[0], 'a session to lease');
  await clients.runners.startSession({ leaseId, startMs: app.clock.now() }, asRunner);
  const parts = blobParts({ kind: 'DOWNLOAD', leaseId }, BYTES);
  const { blobId } = await clients.blobs.writeBlob(parts, asRunner);
  await clients.runners.addDownload({ leaseId, blobId, filename: NAME }, asRunner);
  const { session } = await creating;
  const sessionId = must(session, 'a session').id;
  const wanted = { sessionId, createdAfter: undefined, createdBefore: undefined };
  const { downloads } = await clients.downloads.listDownloads(wanted, asProject);
  return `/console/api/v1/downloads/${must(downloads[0], 'a download').id}/content`;
}

test('a login downloads the bytes as a file, which no browser renders', async () => {
  await using console = await openConsole();
  const path = await openDownload(console);
  const headers = { accept: 'text/html,*/*;q=0.8' };
  const cookie = await console.logIn();
  const answer = await console.browse('GET', path, { cookie, headers });
  assert.is(answer.status, 200);
  assert.is(answer.body.toString(), BYTES);
  assert.is(answer.headers['content-type'], 'application/octet-stream');
  assert.match(String(answer.headers['content-disposition']), /^attachment;/);
  assert.is(answer.headers['x-content-type-options'], 'nosniff');
});

test('without a login, with another project’s and from another site it is refused', async () => {
  await using console = await openConsole();
  const path = await openDownload(console);
  const { app } = console;
  await app.clients.operators.createProject({ name: 'other', limits: undefined }, app.asOperator);
  const theirs = await console.logIn((await console.key('other')).key);
  const cookie = await console.logIn();
  const site = { 'sec-fetch-site': 'cross-site' };
  const refused = [
    [await console.send('GET', path), 401],
    [await console.browse('GET', path, { cookie: theirs }), 404],
    [await console.browse('GET', path, { cookie, headers: site }), 403],
    [await console.browse('DELETE', path, { cookie }), 405],
  ] as const;
  for (const [{ status, body }, expected] of refused) {
    assert.is(status, expected);
    assert.not(body.includes(BYTES));
  }
});

test.run();
