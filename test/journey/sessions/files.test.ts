/**
 * Files of a session, over the public interface: downloads are listed with their hash and zipped,
 * an upload is readable at once, an extension is loaded before the first client.
 */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import Browserbase, { RateLimitError, toFile } from '@browserbasehq/sdk';
import { type Browser, chromium, type Page } from 'playwright-core';
import { suite } from 'uvu';
import { equal, instance, is, match, ok } from 'uvu/assert';
import { openPromise } from 'yauzl';
import { must } from '../../../proto/common/must.ts';
import { until } from '../../support/poll.ts';
import { manifest, zipOf } from '../../support/runner/zips.ts';
import { startSite } from '../../support/servers/site.ts';
import { boot, type Stack, shareStack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/sessions/files');
/** Of a project. */
const EXTENSIONS_MAX = 3;
const service = shareStack({ env: { TABERN_EXTENSIONS_MAX: String(EXTENSIONS_MAX) } });

type Download = { id: string; filename: string; mimeType: string; size: number; checksum: string };
type Listed = { downloads: Download[]; total: number };

const clientOf = ({ url, apiKey }: Stack) => new Browserbase({ apiKey, baseURL: url });
const hash = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');
const firstPage = (browser: Browser): Page => must(browser.contexts()[0]?.pages()[0], 'page');

/** A click on a link that downloads this text. */
async function fetchFile(page: Page, name: string, text: string) {
  const begun = page.waitForEvent('download');
  await page.evaluate(`(() => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([${JSON.stringify(text)}]));
    link.download = ${JSON.stringify(name)};
    link.click();
  })()`);
  return await begun;
}

async function entriesOf(zip: Buffer): Promise<[string, string][]> {
  await using dir = tempDirectory();
  const path = join(dir.path, 'zip');
  writeFileSync(path, zip);
  const found: [string, string][] = [];
  const opened = await openPromise(path, { autoClose: false });
  for await (const entry of opened.eachEntry()) {
    found.push([entry.fileName, hash(await buffer(await opened.openReadStreamPromise(entry)))]);
  }
  opened.close();
  return found;
}

async function ended(client: Browserbase, id: string): Promise<string> {
  return await until(async () => {
    const { status } = await client.sessions.retrieve(id);
    return status !== 'RUNNING' && status !== 'PENDING' && status;
  });
}

journey('a session’s downloads are complete when the session has ended', async () => {
  await using site = await startSite();
  const stack = await service.get();
  const client = clientOf(stack);
  const session = await client.sessions.create({ projectId: stack.projectId });
  const empty = await client.sessions.downloads.list(session.id);
  is((await empty.arrayBuffer()).byteLength, 22);
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = firstPage(browser);
  await page.goto(site.url);
  const large = 'large'.repeat(500_000);
  await fetchFile(page, 'invoice.csv', 'a,b');
  const second = await (await browser.newContext()).newPage();
  await second.goto(site.url);
  // Playwright's disconnection closes its contexts and aborts their downloads.
  is(await (await fetchFile(second, 'large.txt', large)).failure(), null);
  await browser.close();
  is(await ended(client, session.id), 'COMPLETED');

  const path = `/v1/downloads?sessionId=${session.id}`;
  const { downloads, total } = await stack.call<Listed>(path);
  is(total, 2);
  const rows = downloads.map(({ filename, mimeType, size, checksum }) => {
    return [filename, mimeType, size, checksum];
  });
  equal(rows.sort(), [
    ['invoice.csv', 'text/csv', 3, hash('a,b')],
    ['large.txt', 'text/plain', large.length, hash(large)],
  ]);
  const small = await stack.call<Listed>(`${path}&maxSize=3&mimeType=text/csv`);
  equal([small.total, small.downloads[0]?.filename], [1, 'invoice.csv']);
  const one = must(small.downloads[0], 'download');
  const accept = { accept: 'application/octet-stream' };
  const bytes = await stack.fetch(`/v1/downloads/${one.id}`, { headers: accept });
  is(await bytes.text(), 'a,b');
  match(bytes.headers.get('content-disposition') ?? '', 'filename="invoice.csv"');
  const zip = await client.sessions.downloads.list(session.id);
  const found = await entriesOf(Buffer.from(await zip.arrayBuffer()));
  equal(found.map(([name]) => name.replace(/\d{13}/, 'ms')).sort(), [
    'invoice-ms.csv',
    'large-ms.txt',
  ]);
  equal(found.map(([, sum]) => sum).sort(), [hash('a,b'), hash(large)].sort());

  is((await stack.fetch(`/v1/downloads/${one.id}`, { method: 'DELETE' })).status, 204);
  is((await stack.fetch(`/v1/downloads/${one.id}`)).status, 404);
  const all = `/v1/sessions/${session.id}/downloads`;
  is((await stack.fetch(all, { method: 'DELETE' })).status, 204);
  equal(await stack.call<Listed>(path), { downloads: [], total: 0, limit: 20, offset: 0 });
});

journey('an upload is readable by the page when the response arrives', async () => {
  const stack = await service.get();
  const client = clientOf(stack);
  const session = await client.sessions.create({ projectId: stack.projectId });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = firstPage(browser);
  await page.setContent('<input type=file>');
  const file = await toFile(Buffer.from('uploaded'), 'ü b.txt');
  const { message } = await client.sessions.uploads.create(session.id, { file });
  match(message, '/tmp/.uploads/ü b.txt');
  const cdp = await page.context().newCDPSession(page);
  const { root } = await cdp.send('DOM.getDocument');
  const asked = { nodeId: root.nodeId, selector: 'input' };
  const { nodeId } = await cdp.send('DOM.querySelector', asked);
  await cdp.send('DOM.setFileInputFiles', { nodeId, files: ['/tmp/.uploads/ü b.txt'] });
  const read = `document.querySelector('input').files[0].text()`;
  is(await page.evaluate(read), 'uploaded');
  const outside = cdp.send('DOM.setFileInputFiles', { nodeId, files: ['/etc/passwd'] });
  match(String(await outside.catch((error: unknown) => error)), 'only files below /tmp/.uploads');
  await browser.close();
  await ended(client, session.id);
  const late = await client.sessions.uploads
    .create(session.id, { file: await toFile(Buffer.from('x'), 'x') })
    .catch((error: { status?: number }) => error.status);
  is(late, 410);
});

journey('an extension is loaded once, before the first client of its session', async () => {
  await using site = await startSite();
  const stack = await service.get();
  const client = clientOf(stack);
  const zip = await zipOf({
    'manifest.json': manifest({
      name: 'Stagehand Runtime',
      background: { service_worker: 'worker.js' },
      content_scripts: [{ matches: ['<all_urls>'], js: ['mark.js'], run_at: 'document_start' }],
    }),
    'worker.js': 'self.addEventListener("fetch", () => {});',
    'mark.js': 'document.documentElement.dataset.mark = "here";',
  });
  const { id, fileName } = await client.extensions.create({ file: await toFile(zip, 'my.zip') });
  is(fileName, 'my.zip');
  const session = await client.sessions.create({ projectId: stack.projectId, extensionId: id });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const cdp = await browser.newBrowserCDPSession();
  const { extensions } = (await cdp.send('Extensions.getExtensions' as never)) as unknown as {
    extensions: { name: string; enabled: boolean }[];
  };
  equal(
    extensions.map(({ name, enabled }) => [name, enabled]),
    [['Stagehand Runtime', true]],
  );
  const { targetInfos } = await cdp.send('Target.getTargets');
  ok(targetInfos.some(({ type, url }) => type === 'service_worker' && /worker\.js$/.test(url)));
  const page = firstPage(browser);
  await page.goto(site.url);
  is(await page.evaluate('document.documentElement.dataset.mark'), 'here');
  await client.extensions.delete(id);
  await browser.close();
  is(await ended(client, session.id), 'COMPLETED');
  const gone = await client.sessions
    .create({ projectId: stack.projectId, extensionId: id })
    .catch((error: { status?: number }) => error.status);
  is(gone, 404);
  const bad = await client.extensions
    .create({ file: await toFile(await zipOf({ 'a/manifest.json': manifest() }), 'a.zip') })
    .catch((error: Error) => error.message);
  match(String(bad), '400 `file` is no extension: manifest.json must be at the root of the zip');
});

/** Its content script sets this attribute of every document. */
const markingZip = (name: string) =>
  zipOf({
    'manifest.json': manifest({
      name,
      content_scripts: [{ matches: ['<all_urls>'], js: ['mark.js'], run_at: 'document_start' }],
    }),
    'mark.js': `document.documentElement.dataset.${name} = 'here';`,
  });

journey('a session loads several extensions, and keeps them when they are deleted', async () => {
  await using site = await startSite();
  const client = clientOf(await service.get());
  const ids: string[] = [];
  for (const name of ['first', 'second', 'third']) {
    const file = await toFile(await markingZip(name), `${name}.zip`);
    ids.push((await client.extensions.create({ file })).id);
  }
  // newer than the types of this SDK
  const browserSettings = { extensions: ids } as object;
  const session = await client.sessions.create({ browserSettings });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = firstPage(browser);
  const marks = async () => {
    await page.goto(site.url);
    return await page.evaluate('Object.keys(document.documentElement.dataset).sort()');
  };
  equal(await marks(), ['first', 'second', 'third']);

  is(ids.length, EXTENSIONS_MAX);
  const upload = async (options: { maxRetries?: number }) => {
    const file = await toFile(await markingZip('fourth'), 'fourth.zip');
    return await client.extensions.create({ file }, options);
  };
  const full = await upload({ maxRetries: 0 }).catch((error: unknown) => error);
  instance(full, RateLimitError);
  is((full as RateLimitError).headers?.['retry-after'], '5');
  const waiting = upload({});
  await Promise.all(ids.map((id) => client.extensions.delete(id)));
  ids.splice(0, ids.length, (await waiting).id);
  equal(await marks(), ['first', 'second', 'third'], 'deleted while in use');
  await browser.close();
  is(await ended(client, session.id), 'COMPLETED');
  await client.extensions.delete(ids[0] ?? '');
});

journey('without a full Chromium, a session with an extension fails with the reason', async () => {
  const program = '/usr/lib/chromium/chromium-headless-shell';
  await using stack = await boot({ env: { TABERN_CHROME: program } });
  const client = clientOf(stack);
  const file = await toFile(await zipOf({ 'manifest.json': manifest() }), 'a.zip');
  const { id } = await client.extensions.create({ file });
  const said = await client.sessions
    .create({ projectId: stack.projectId, extensionId: id }, { maxRetries: 0 })
    .catch((error: Error) => error.message);
  match(String(said), 'the session needs chromium, which its runner does not have');
  const [session] = await client.sessions.list();
  is(session?.status, 'ERROR');
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();
