/** Requests for everything of a session with the key of another project: 404. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { blobParts, KEY } from '../../core/boot.ts';
import { manifest, zipOf } from '../../support/runner/zips.ts';
import { addProject } from '../../support/service/other-project.ts';
import { openUploads } from '../routes/files/contexts.ts';
import { type Answer, ask, json } from '../sessions/runner.ts';

const test = suite('gateway/tenants/isolation');

type Options = { headers?: Record<string, string>; body?: string | Buffer };

function formOf(bytes: Buffer): Options {
  const head = '--b\r\ncontent-disposition: form-data; name="file"; filename="x.zip"\r\n\r\n';
  const body = Buffer.concat([Buffer.from(head), bytes, Buffer.from('\r\n--b--\r\n')]);
  return { headers: { 'content-type': 'multipart/form-data; boundary=b' }, body };
}

/** A running session with a download, and an extension. */
async function openTenants() {
  const app = await openUploads();
  const other = await addProject(app);
  const send = (key: string, method: string, path: string, options: Options = {}) => {
    const headers = { ...options.headers, 'x-svc-api-key': key };
    return ask(app.gateway.url, method, path, { ...options, headers });
  };
  const creating = send(KEY, 'POST', '/v1/sessions', json({ userMetadata: { a: 'b' } }));
  const { leaseId } = must((await app.lease('SESSION', 25_000))[0], 'a session');
  const { blobs, runners } = app.clients;
  await runners.startSession({ leaseId, startMs: 0 }, app.asRunner);
  const parts = blobParts({ kind: 'DOWNLOAD', leaseId }, 'bytes');
  const { blobId } = await blobs.writeBlob(parts, app.asRunner);
  await runners.addDownload({ leaseId, blobId, filename: 'a.txt' }, app.asRunner);
  const idOf = ({ json: body }: Answer) => String(Reflect.get(body as object, 'id'));
  const session = (await creating).json as { id: string; projectId: string };
  const listed = await send(KEY, 'GET', `/v1/downloads?sessionId=${session.id}`);
  const [download] = (listed.json as { downloads: { id: string }[] }).downloads;
  const zip = formOf(await zipOf({ 'manifest.json': manifest() }));
  const extensionId = idOf(await send(KEY, 'POST', '/v1/extensions', zip));
  return { ...app, other, send, session, download: must(download, 'a download').id, extensionId };
}

test('each operation on another project’s object is a 404, and changes nothing', async () => {
  await using app = await openTenants();
  const { other, send, session, extensionId } = app;
  const [own, download] = [`/v1/sessions/${session.id}`, `/v1/downloads/${app.download}`];
  const settings = (value: object) => json({ browserSettings: value });
  const asked: [method: string, path: string, options?: Options][] = [
    ['GET', own],
    ['GET', `/console/api/v1/downloads/${app.download}/content`],
    ['POST', own, json({ status: 'REQUEST_RELEASE' })],
    ['DELETE', own],
    ...[
      'debug',
      'logs',
      'recording',
      'recording/downloads',
      'replays',
      'replays/0',
      'downloads',
    ].map((name): [string, string] => ['GET', `${own}/${name}`]),
    ['POST', `${own}/recording/downloads`],
    ['DELETE', `${own}/downloads`],
    ['POST', `${own}/uploads`, formOf(Buffer.from('x'))],
    ['GET', `/v1/downloads?sessionId=${session.id}`],
    ['GET', download],
    ['GET', download, { headers: { accept: 'application/octet-stream' } }],
    ['DELETE', download],
    ['GET', `/v1/extensions/${extensionId}`],
    ['DELETE', `/v1/extensions/${extensionId}`],
    ['POST', '/v1/sessions', json({ extensionId })],
    ['POST', '/v1/sessions', settings({ extensionId })],
    ['POST', '/v1/sessions', settings({ context: { id: app.context.id } })],
    ['POST', '/v1/sessions/start', json({ browserbaseSessionID: session.id })],
    ['GET', `/v1/projects/${session.projectId}`],
    ['GET', `/v1/projects/${session.projectId}/usage`],
    ['GET', `/json/version?sessionId=${session.id}`],
  ];
  for (const [method, path, options] of asked) {
    assert.is((await send(other, method, path, options)).status, 404, `${method} ${path}`);
  }
  const q = encodeURIComponent("user_metadata['a']:'b'");
  for (const path of ['/v1/sessions', `/v1/sessions?q=${q}`]) {
    assert.equal((await send(other, 'GET', path)).json, [], path);
  }
  assert.is(Reflect.get((await send(KEY, 'GET', own)).json as object, 'status'), 'RUNNING');
  assert.is((await send(KEY, 'GET', download)).status, 200);
  assert.is((await send(KEY, 'GET', `/v1/extensions/${extensionId}`)).status, 200);
});

test.run();
