/** The published SDK, unmodified, from the start to the end of a session. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Browserbase, { APIError, toFile } from '@browserbasehq/sdk';
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import yazl from 'yazl';
import { must } from '../../../proto/common/must.ts';
import { until } from '../../support/poll.ts';
import { boot, type Stack } from '../../support/service/stack.ts';

const journey = suite('journey/sessions/sdk-sessions');
const UNKNOWN = '01a1fbc0-0000-7000-8000-000000000000';
const REPORT = 'a,b\n1,2\n';

const clientOf = ({ url, apiKey }: Stack, options = {}) =>
  new Browserbase({ apiKey, baseURL: url, ...options });

async function errorOf(promise: Promise<unknown>): Promise<APIError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.instance(error, APIError);
  return error as APIError;
}

/** A page with an upload field and a file to download. */
async function startFiles() {
  const server = createServer((request, response) => {
    if (request.url === '/report') {
      response.writeHead(200, { 'content-disposition': 'attachment; filename="report.csv"' });
      response.end(REPORT);
      return;
    }
    response.setHeader('content-type', 'text/html');
    response.end('<title>files</title><a href="/report">get</a><input type="file">');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function zipOf(files: Record<string, string>): Promise<Buffer> {
  const zip = new yazl.ZipFile();
  for (const [name, text] of Object.entries(files)) zip.addBuffer(Buffer.from(text), name);
  zip.end();
  const parts: Buffer[] = [];
  for await (const part of zip.outputStream) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

journey('a session is created, listed, watched and released', async () => {
  await using stack = await boot();
  const client = clientOf(stack);
  const session = await client.sessions.create({
    projectId: stack.projectId,
    keepAlive: true,
    api_timeout: 600,
    region: 'eu-central-1',
    userMetadata: { order: { number: 'A7' } },
    // newer than the types of this SDK
    ...({ labels: ['nightly', 'Shop'] } as object),
  });
  const labelsOf = async () =>
    Reflect.get(await client.sessions.retrieve(session.id), 'labels') as string[];
  assert.equal(await labelsOf(), ['Shop', 'nightly']);
  await client.put(`/v1/sessions/${session.id}/labels`, { body: { labels: ['SHOP', 'b'] } });
  assert.equal(await labelsOf(), ['Shop', 'b']);
  const labelled = async (query: string) =>
    (await client.get<unknown, { id: string }[]>(`/v1/sessions?${query}`)).map(({ id }) => id);
  assert.equal(await labelled('label=shop&label=B'), [session.id]);
  assert.equal(await labelled('label=shop&label=nightly'), []);
  assert.is(session.status, 'RUNNING');
  assert.match(session.connectUrl, /^ws:\/\/.+signingKey=/);
  assert.match(session.seleniumRemoteUrl, /^http:\/\//);
  assert.ok(session.signingKey.length > 20);
  assert.equal([session.keepAlive, session.region], [true, 'eu-central-1']);
  const lifeMs = Date.parse(session.expiresAt) - Date.parse(session.startedAt);
  assert.is(lifeMs, 600_000);

  const q = "user_metadata['order']['number']:'A7'";
  const ids = async (query: object) => (await client.sessions.list(query)).map(({ id }) => id);
  assert.equal(await ids({ status: 'RUNNING', q }), [session.id]);
  assert.equal(await ids({ q: q.replace('A7', 'A8') }), []);
  assert.is((await errorOf(client.sessions.list({ q: 'order=A7' }))).status, 400);

  const live = await client.sessions.debug(session.id);
  assert.match(live.debuggerFullscreenUrl, /^http:\/\/.+\?/);
  assert.is(live.pages.length, 1);
  const driven = await chromium.connectOverCDP(live.wsUrl);
  assert.is(driven.contexts()[0]?.pages().length, 1, 'wsUrl speaks CDP');
  await driven.close();

  const url = `/v1/sessions/${session.id}`;
  assert.is((await stack.fetch(url, { method: 'DELETE' })).status, 204);
  await until(async () => (await client.sessions.retrieve(session.id)).status === 'COMPLETED');
  const released = await client.sessions.update(session.id, { status: 'REQUEST_RELEASE' });
  assert.is(released.status, 'COMPLETED', 'a session that has ended stays as it is');
  const usage = await client.projects.usage(stack.projectId);
  assert.is(usage.browserMinutes, 1);
});

journey('an error names the invalid field or the limit', async () => {
  await using stack = await boot({ env: { TABERN_CONCURRENCY: '1' } });
  const client = clientOf(stack, { maxRetries: 0 });
  const wrong: [object, RegExp][] = [
    [{ api_timeout: 59 }, /timeout/],
    [{ api_timeout: 21_601 }, /timeout.*21600/],
    [{ region: 'mars' }, /region/],
    [{ userMetadata: { long: 'x'.repeat(600) } }, /userMetadata/],
    [{ proxies: [{ type: 'elsewhere' }] }, /proxies/],
    [{ browserSettings: { os: 'amiga' } }, /os/],
    [{ browserSettings: { viewport: { width: 0 } } }, /viewport/],
  ];
  for (const [body, message] of wrong) {
    const { status, message: said } = await errorOf(client.sessions.create(body as object));
    assert.is(status, 400, JSON.stringify(body));
    assert.match(said, message);
  }
  const absent = { browserSettings: { context: { id: UNKNOWN } } };
  assert.is((await errorOf(client.sessions.create(absent))).status, 404);
  assert.is((await errorOf(client.sessions.create({ extensionId: UNKNOWN }))).status, 404);

  const first = await client.sessions.create({ keepAlive: true });
  const full = await errorOf(client.sessions.create());
  assert.is(full.status, 429);
  assert.match(full.message, /limit 1, currently 1/);
  assert.is(full.headers?.['x-ratelimit-limit'], '1');
  assert.is(full.headers?.['x-ratelimit-remaining'], '0');
  assert.ok(Number(full.headers?.['retry-after']) <= 60);
  await client.sessions.update(first.id, { status: 'REQUEST_RELEASE' });
  const next = await client.sessions.create({ keepAlive: true });
  assert.is(next.status, 'RUNNING', 'a released place is free at once');
  await client.sessions.update(next.id, { status: 'REQUEST_RELEASE' });
});

journey('files are uploaded and downloaded', async () => {
  await using files = await startFiles();
  await using stack = await boot({ env: { TABERN_BROWSER_ALLOW_CIDRS: '127.0.0.1/32' } });
  const client = clientOf(stack);
  const session = await client.sessions.create();
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'the default page');
  await page.goto(files.url);

  const file = await toFile(Buffer.from('hello'), 'hello.txt');
  assert.type((await client.sessions.uploads.create(session.id, { file })).message, 'string');
  const cdp = await must(browser.contexts()[0], 'the context').newCDPSession(page);
  const { root } = await cdp.send('DOM.getDocument');
  const { nodeId } = await cdp.send('DOM.querySelector', {
    nodeId: root.nodeId,
    selector: 'input',
  });
  await cdp.send('DOM.setFileInputFiles', { nodeId, files: ['/tmp/.uploads/hello.txt'] });
  const read = "document.querySelector('input').files[0].text()";
  assert.is(await page.evaluate(read), 'hello');

  await page.click('a');
  type Downloads = { downloads: { id: string; filename: string; checksum: string }[] };
  const download = await until(async () => {
    const path = `/v1/downloads?sessionId=${session.id}`;
    return (await stack.call<Downloads>(path)).downloads[0];
  });
  assert.is(download.filename, 'report.csv');
  assert.is(download.checksum, createHash('sha256').update(REPORT).digest('hex'));
  const zip = await client.sessions.downloads.list(session.id);
  const bytes = Buffer.from(await zip.arrayBuffer());
  assert.is(bytes.readUInt32LE(0), 0x04034b50, 'a zip that holds something');
  assert.match(bytes.toString('latin1'), /report-\d{13}\.csv/);
  await browser.close();
  await until(async () => (await client.sessions.retrieve(session.id)).status === 'COMPLETED');
});

journey('an extension is uploaded, loaded and deleted', async () => {
  await using stack = await boot();
  const client = clientOf(stack);
  const manifest = {
    manifest_version: 3,
    name: 'Marker',
    version: '1.0',
    background: { service_worker: 'worker.js' },
  };
  const zip = await zipOf({ 'manifest.json': JSON.stringify(manifest), 'worker.js': '' });
  const extension = await client.extensions.create({ file: await toFile(zip, 'marker.zip') });
  assert.is(extension.fileName, 'marker.zip');
  assert.equal(await client.extensions.retrieve(extension.id), extension);
  const session = await client.sessions.create({ extensionId: extension.id });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const cdp = await browser.newBrowserCDPSession();
  const { targetInfos } = await cdp.send('Target.getTargets');
  assert.ok(targetInfos.some(({ type, url }) => type === 'service_worker' && /worker/.test(url)));
  await browser.close();
  await client.extensions.delete(extension.id);
  assert.is((await errorOf(client.extensions.retrieve(extension.id))).status, 404);
  const bad = await errorOf(
    client.extensions.create({ file: await toFile(Buffer.from('no zip'), 'x.zip') }),
  );
  assert.is(bad.status, 400);
});

journey.run();
