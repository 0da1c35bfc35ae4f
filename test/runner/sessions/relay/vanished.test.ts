/** What drivers see when a frame or a file is not there: as with a Chrome of their own. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { listen, openLab } from '../../browser/lab.ts';
import { openBench } from '../log/taps.ts';

const vanished = suite('runner/sessions/relay/vanished');

const CALLS = 6;

/** A page with a frame of another site. */
const answer: RequestListener = (request, response) => {
  const port = request.socket.localPort;
  const frame = `<iframe src="http://localhost:${port}/frame"></iframe>`;
  response.writeHead(200, { 'content-type': 'text/html' });
  response.end(request.url === '/' ? frame : '<p>frame</p>');
};

vanished('exposeFunction resolves while a frame of another site goes', async () => {
  await using lab = await openLab({ allow: ['127.0.0.0/8', '::1/128'] });
  const site = createServer(answer);
  const url = `http://127.0.0.1:${await listen(site)}/`;
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const failures: string[] = [];
  for (let round = 0; round < 5; round += 1)
    failures.push(...(await exposeWhileGoing(browser, url)));
  assert.equal(failures, []);
  await browser.close();
  site.close();
  site.closeAllConnections();
});

async function exposeWhileGoing(browser: Browser, url: string): Promise<string[]> {
  const page = await browser.newPage();
  await page.goto(url);
  await page.frameLocator('iframe').locator('p').waitFor();
  const gone = page.evaluate('document.querySelector("iframe").remove()');
  const exposed = Array.from({ length: CALLS }, (_, index) =>
    page.exposeFunction(`f${index}`, () => index),
  );
  const outcomes = await Promise.allSettled([gone, ...exposed]);
  const last = await page.evaluate(`f${CALLS - 1}()`);
  assert.is(last, CALLS - 1);
  await page.close();
  return outcomes.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
}

vanished('files that a session does not have are refused at once, with the reason', async () => {
  const { tap } = openBench();
  await using lab = await openLab({ allow: [], tap });
  const dir = mkdtempSync(join(tmpdir(), 'tabern-own-'));
  writeFileSync(join(dir, 'a.txt'), 'a');
  const html = '<input type=file webkitdirectory>';
  const reason = /only files below \/tmp\/\.uploads can be given to a page/;
  const withPlaywright = await chromium.connectOverCDP(lab.connectUrl);
  const page = await withPlaywright.newPage();
  await page.setContent(html);
  const handle = await page.$('input');
  assert.match(String(await handle?.setInputFiles(dir).catch(String)), reason);
  // a locator of Playwright tries again until its timeout, whatever the error: the log has it, once
  const late = await page.locator('input').setInputFiles(dir, { timeout: 1_000 }).catch(String);
  assert.match(String(late), /Timeout/);
  const warnings = tap.take(1_000, 1 << 30).filter(({ method }) => method === 'Tabern.warning');
  assert.is(warnings.length, 1);
  assert.match(warnings[0]?.request.text ?? '', reason);
  await withPlaywright.close();
  const withPuppeteer = await puppeteer.connect({ browserWSEndpoint: lab.connectUrl });
  const other = await withPuppeteer.newPage();
  await other.setContent('<input type=file>');
  const input = await other.$('input[type=file]');
  const answer = await input?.uploadFile(join(dir, 'a.txt')).catch(String);
  assert.match(String(answer), reason);
  await withPuppeteer.disconnect();
  await rm(dir, { recursive: true });
});

vanished.run();
