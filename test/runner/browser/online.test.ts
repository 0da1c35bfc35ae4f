/**
 * navigator.onLine in pages and workers: true in every sandbox, although no jail has a network
 * interface that leads out, and false where a client emulates it.
 */
import { createServer } from 'node:http';
import { type Browser, chromium, type Page } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { JailError } from '../../../runner/jail/jail.ts';
import { type Lab, listen, openLab } from './lab.ts';

const test = suite('runner/browser/online');
const FULL = '/usr/lib/chromium/chromium';
const SHELL = '/usr/lib/chromium/chromium-headless-shell';
/** Landlock runs the shell alone. */
const ROWS = [
  { sandbox: 'bwrap', program: FULL },
  { sandbox: 'bwrap', program: SHELL },
  { sandbox: 'landlock', program: SHELL },
  { sandbox: 'none', program: FULL },
] as const;

/** Read in every realm that a page can start. */
const EVERYWHERE = `(async () => {
  const said = (target) => new Promise((resolve) => {
    target.onmessage = ({ data }) => resolve(data);
  });
  const blob = (code) => URL.createObjectURL(new Blob([code]));
  const frame = document.createElement('iframe');
  document.body.append(frame);
  const worker = said(new Worker(blob('postMessage(navigator.onLine)')));
  const answer = 'onconnect = ({ ports }) => ports[0].postMessage(navigator.onLine)';
  const shared = said(new SharedWorker(blob(answer)).port);
  const fromService = said(navigator.serviceWorker);
  await navigator.serviceWorker.register('/service.js');
  (await navigator.serviceWorker.ready).active.postMessage('');
  return {
    page: navigator.onLine,
    frame: frame.contentWindow.navigator.onLine,
    worker: await worker,
    shared: await shared,
    service: await fromService,
  };
})()`;
const SERVICE = `onmessage = ({ source }) => source.postMessage(navigator.onLine)`;

for (const row of ROWS) {
  const name = `${row.sandbox}, ${row.program.replace(/.*\//, '')}`;
  test(`pages and workers are online until a client emulates otherwise (${name})`, async () => {
    const lab = await opened(row);
    if (lab === undefined) return;
    await using _ = lab;
    await using site = await openSite();
    const browser = await chromium.connectOverCDP(lab.connectUrl);
    for (const page of await pagesOf(browser)) {
      await page.goto(site.url);
      const all = { page: true, frame: true, worker: true, shared: true, service: true };
      assert.equal(await page.evaluate(EVERYWHERE), all);
      await page.context().setOffline(true);
      assert.is(await page.evaluate('navigator.onLine'), false);
      assert.match(await page.evaluate('fetch("/").catch(String)'), 'Failed to fetch');
      await page.context().setOffline(false);
      assert.is(await page.evaluate('navigator.onLine'), true);
      assert.is(await page.evaluate('fetch("/").then(({ ok }) => ok)'), true);
    }
    await browser.close();
  });
}

async function openSite(): Promise<AsyncDisposable & { url: string }> {
  const server = createServer(({ url }, response) => {
    const isScript = url === '/service.js';
    response.writeHead(200, { 'content-type': isScript ? 'text/javascript' : 'text/html' });
    response.end(isScript ? SERVICE : '<title>site</title>');
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}/`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function pagesOf(browser: Browser): Promise<Page[]> {
  const own = await browser.newContext();
  return [...(browser.contexts()[0]?.pages() ?? []), await own.newPage()];
}

/** Undefined where the machine has no such sandbox. */
async function opened({ sandbox, program }: (typeof ROWS)[number]): Promise<Lab | undefined> {
  try {
    return await openLab({ allow: ['127.0.0.0/8'], program, sandbox });
  } catch (error) {
    if (error instanceof JailError && sandbox === 'landlock') return undefined;
    throw error;
  }
}

test.run();
