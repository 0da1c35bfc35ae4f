/** Files of a session in real Chromes: downloaded, uploaded, and an extension loaded. */
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { type Browser, chromium, type Page } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { type DownloadsOptions, downloads } from '../../../runner/sessions/downloads.ts';
import { uploads } from '../../../runner/sessions/uploads.ts';
import { faultOf } from '../../support/fault.ts';
import { testLease, testRunner } from '../../support/runner/lease.ts';
import { startSlow } from '../../support/servers/slow.ts';
import { type Lab, log, openLab, until } from '../browser/lab.ts';

const test = suite('runner/sessions/files');
const ENGINES = ['/usr/lib/chromium/chromium-headless-shell', '/usr/lib/chromium/chromium'];
/** For Chrome, on a machine that is busy. */
const LONG_MS = 60_000;
const HOME = { allow: ['127.0.0.0/8'] };
const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

/** A core that keeps what it is sent. */
function keeping(options: Partial<DownloadsOptions> = {}) {
  const kept: { filename: string; sha256: string; size: number }[] = [];
  const blobs = new Map<string, Buffer>();
  const warnings: string[] = [];
  const clients = {
    blobs: {
      beginUpload: async () => ({}),
      async writeBlob(parts: AsyncIterable<{ part?: { $case: string; value: unknown } }>) {
        const bytes: Buffer[] = [];
        for await (const { part } of parts) {
          if (part?.$case === 'chunk') bytes.push(Buffer.from(part.value as Buffer));
        }
        const blobId = `blob-${blobs.size}`;
        blobs.set(blobId, Buffer.concat(bytes));
        return { blobId, size: 0, sha256: '' };
      },
    },
    runners: {
      async addDownload({ leaseId, blobId, filename }: Record<string, string>) {
        if (leaseId !== 'the-lease') throw new Fault('LEASE_LOST', 'no');
        const bytes = must(blobs.get(String(blobId)), 'blob');
        kept.push({ filename: String(filename), sha256: hash(bytes), size: bytes.length });
        return {};
      },
    },
  };
  const open = downloads({
    runner: testRunner({ clients, log }),
    lease: testLease('the-lease'),
    warn: (message) => warnings.push(message),
    ...options,
  });
  return { open, kept, warnings, clients };
}

const firstPage = (browser: Browser): Page => must(browser.contexts()[0]?.pages()[0], 'page');

/** A click on a link that downloads this text. */
async function fetchFile(page: Page, name: string, text: string): Promise<void> {
  await page.evaluate(`(() => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([${JSON.stringify(text)}]));
    link.download = ${JSON.stringify(name)};
    link.click();
  })()`);
}

const leftIn = ({ chrome }: Lab) => readdirSync(join(chrome.dir, 'downloads'));

for (const program of ENGINES) {
  const name = program.split('/').at(-1);

  test(`${name}: downloads of any browser context reach core complete`, async () => {
    await using lab = await openLab({ ...HOME, program });
    const { open, kept, warnings } = keeping();
    const part = await open(lab.chrome);
    const browser = await chromium.connectOverCDP(lab.connectUrl);
    const page = firstPage(browser);
    await page.goto(lab.siteUrl);
    const large = 'large'.repeat(1_000_000);
    await fetchFile(page, 'ü 1.txt', large);
    const second = await (await browser.newContext()).newPage();
    await second.goto(lab.siteUrl);
    const [, said] = await Promise.all([
      fetchFile(second, 'b.csv', 'b'),
      second.waitForEvent('download'),
    ]);
    assert.is(said.suggestedFilename(), 'b.csv');
    await until(() => kept.length === 2, 'both are kept');
    const cdp = await browser.newBrowserCDPSession();
    const { browserContextId } = await cdp.send('Target.createBrowserContext', {});
    await cdp.send('Target.createTarget', { url: `${lab.siteUrl}/file`, browserContextId });
    await until(() => kept.length === 3, 'that of a bare context too');
    await part.close?.();
    const byName = kept.sort((a, b) => (a.filename < b.filename ? -1 : 1));
    const row = (filename: string, text: string) => {
      return { filename, sha256: hash(Buffer.from(text)), size: Buffer.byteLength(text) };
    };
    assert.equal(byName, [row('a.txt', 'file'), row('b.csv', 'b'), row('ü 1.txt', large)]);
    assert.equal([warnings, leftIn(lab)], [[], []]);
    await browser.close();
  });
}

test('a cancelled download is a warning, and nothing of it is kept', async () => {
  await using lab = await openLab(HOME);
  await using slow = await startSlow();
  const { open, kept, warnings } = keeping();
  const part = await open(lab.chrome);
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = firstPage(browser);
  await page.goto(lab.siteUrl);
  const begun = page.waitForEvent('download', { timeout: LONG_MS });
  await page.evaluate(`location.href = ${JSON.stringify(slow.url)}`);
  await (await begun).cancel();
  await until(() => warnings.length > 0, 'it is told');
  await part.close?.();
  assert.equal([warnings, kept], [['the download of "slow.bin" was cancelled'], []]);
  await browser.close();
});

test('the end of a session waits for a download in progress', async () => {
  await using lab = await openLab(HOME);
  const { open, kept } = keeping();
  const part = await open(lab.chrome);
  const begun = Promise.withResolvers<void>();
  lab.chrome.pipe.onEvent(({ method }) => {
    if (method === 'Browser.downloadWillBegin') begun.resolve();
  });
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  await fetchFile(firstPage(browser), 'a.txt', 'x'.repeat(3_000_000));
  await begun.promise;
  await browser.close();
  await part.close?.();
  assert.equal(
    kept.map(({ size }) => size),
    [3_000_000],
  );
});

test('the end of a session waits for all uploads together', async () => {
  await using lab = await openLab(HOME);
  const addDownload = () => Promise.reject(new Fault('CORE_UNAVAILABLE', 'away'));
  const { clients } = keeping();
  const runner = testRunner({ clients: { ...clients, runners: { addDownload } }, log });
  const limits = { files: 9, bytes: 9_000, endMs: 500 };
  const { open, warnings } = keeping({ runner, limits });
  const part = await open(lab.chrome);
  const stored = Promise.withResolvers<void>();
  let begun = 0;
  lab.chrome.pipe.onEvent(({ method, params }) => {
    const isStored = method === 'Browser.downloadProgress' && params['state'] === 'completed';
    if (isStored && ++begun === 3) stored.resolve();
  });
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const names = ['a.txt', 'b.txt', 'c.txt'];
  for (const name of names) await fetchFile(firstPage(browser), name, 'x');
  await stored.promise;
  await browser.close();
  await part.close?.();
  assert.equal(
    warnings.toSorted(),
    names.map((name) => `"${name}" could not be kept: away`),
  );
});

test('beyond its limits a session keeps no download, with one warning', async () => {
  await using lab = await openLab(HOME);
  const { open, kept, warnings } = keeping({ limits: { files: 1, bytes: 1_000, endMs: LONG_MS } });
  const part = await open(lab.chrome);
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = firstPage(browser);
  await fetchFile(page, 'large.txt', 'x'.repeat(1_001));
  await until(() => warnings.length === 1, 'too large a file is told');
  await fetchFile(page, 'one.txt', 'x');
  await until(() => kept.length === 1, 'the first is kept');
  await fetchFile(page, 'two.txt', 'x');
  await until(() => warnings.length === 2, 'too many are told');
  await fetchFile(page, 'three.txt', 'x');
  await browser.close();
  await part.close?.();
  assert.equal([kept.map(({ filename }) => filename), warnings.length], [['one.txt'], 2]);
  assert.match(warnings[0] ?? '', /^"large.txt" is not kept/);
  assert.match(warnings[1] ?? '', /^downloads are not kept any more: .* at most 1 files/);
});

test('a link in the place of a download is not followed', async () => {
  await using lab = await openLab(HOME);
  const { open, kept, warnings } = keeping();
  let isPlanted = false;
  const pipe = { ...lab.chrome.pipe };
  const part = await open({
    ...lab.chrome,
    pipe: {
      ...pipe,
      onEvent: (listener) =>
        pipe.onEvent((event) => {
          const { state, guid } = event.params;
          if (state !== 'completed') return listener(event);
          const path = join(lab.chrome.dir, 'downloads', String(guid));
          void rm(path)
            .then(() => symlink('/etc/passwd', path))
            .then(() => {
              isPlanted = true;
              listener(event);
            });
        }),
    },
  });
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  await fetchFile(firstPage(browser), 'a.txt', 'x');
  await until(() => isPlanted && warnings.length > 0, 'it is told');
  await browser.close();
  await part.close?.();
  assert.equal(
    [kept, warnings],
    [[], ['"a.txt" could not be kept: An unexpected error occurred.']],
  );
});

test('a page reads the newest upload of a name at its path', async () => {
  await using lab = await openLab(HOME);
  const put = must((await uploads()(lab.chrome)).putUpload, 'putUpload');
  await put('ü b.txt', Readable.from([Buffer.from('old')]));
  await put('ü b.txt', Readable.from([Buffer.from('new '), Buffer.from('text')]));
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = firstPage(browser);
  await page.setContent('<input type=file>');
  const cdp = await page.context().newCDPSession(page);
  const { root } = await cdp.send('DOM.getDocument');
  const { nodeId } = await cdp.send('DOM.querySelector', {
    nodeId: root.nodeId,
    selector: 'input',
  });
  await cdp.send('DOM.setFileInputFiles', { nodeId, files: ['/tmp/.uploads/ü b.txt'] });
  const read = await page.evaluate(`(async () => {
    const [file] = document.querySelector('input').files;
    return file.name + ' ' + (await file.text());
  })()`);
  assert.is(read, 'ü b.txt new text');
  await browser.close();
});

test('an upload has a plain name and a limit, and an aborted one is not stored', async () => {
  await using lab = await openLab(HOME);
  const part = await uploads({ files: 2, bytes: 10 })(lab.chrome);
  const put = must(part.putUpload, 'putUpload');
  const text = (bytes: string) => Readable.from([Buffer.from(bytes)]);
  for (const name of ['', '.', '..', 'a/b', '../a', '/etc/x', 'a\0b', '.part-x', 'x'.repeat(256)]) {
    assert.is((await faultOf(put(name, text('x')))).reason, 'INVALID_FIELD', name);
  }
  assert.is((await faultOf(put('a', text('x'.repeat(11))))).reason, 'BODY_TOO_LARGE');
  const broken = async function* () {
    yield Buffer.from('x');
    throw new Fault('CANCELLED', 'gone');
  };
  assert.is((await faultOf(put('a', Readable.from(broken())))).reason, 'CANCELLED');
  await put('a', text('xxxxx'));
  assert.is((await faultOf(put('b', text('yyyyyy')))).reason, 'BODY_TOO_LARGE');
  await put('b', text('yyyyy'));
  assert.is((await faultOf(put('c', text('')))).reason, 'BODY_TOO_LARGE');
  assert.equal(readdirSync(join(lab.chrome.dir, 'uploads')).sort(), ['a', 'b']);
});

test.run();
