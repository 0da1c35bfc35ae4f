/** A missing frame or file looks to drivers as with a Chrome of their own. */
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Browser, chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { listen, openLab } from '../../browser/lab.ts';
import { openBench } from '../log/recorder-bench.ts';

const vanished = suite('runner/sessions/relay/vanished');

/** The shell has frames of another site in their page's process, on its session. */
const FULL = '/usr/bin/chromium';
const CALLS = 6;
const ROUNDS = 6;
/** How a frame of another site goes. */
const GOING = [
  'document.querySelector("iframe").remove()',
  'document.querySelector("iframe").src = "about:blank"; 0',
];
/** Each way. Ours: longer than a frame takes to go. */
const FAR_MS = 50;

/** A page with a frame of another site. */
const answer: RequestListener = (request, response) => {
  const port = request.socket.localPort;
  const frame = `<iframe src="http://localhost:${port}/frame"></iframe>`;
  response.writeHead(200, { 'content-type': 'text/html' });
  response.end(request.url === '/' ? frame : '<p>frame</p>');
};

vanished('exposeFunction resolves while a frame of another site is removed', async () => {
  await using lab = await openLab({ allow: ['127.0.0.0/8', '::1/128'], program: FULL });
  await using far = await openFar(Number(new URL(lab.connectUrl).port));
  const site = createServer(answer).unref();
  const url = `http://127.0.0.1:${await listen(site)}/`;
  const browser = await chromium.connectOverCDP(`ws://127.0.0.1:${far.port}/`);
  const failures: string[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const going = GOING[round % GOING.length] ?? '';
    failures.push(...(await exposeWhileGoing(browser, url, going)));
  }
  await browser.close();
  site.close();
  site.closeAllConnections();
  assert.equal(failures, []);
});

async function exposeWhileGoing(browser: Browser, url: string, going: string): Promise<string[]> {
  const page = await browser.newPage();
  await page.goto(url);
  await page.frameLocator('iframe').locator('p').waitFor();
  const gone = page.evaluate(going);
  // Chrome has ended the frame's session, and Playwright has not yet received the event
  await pause(FAR_MS);
  const exposed = Array.from({ length: CALLS }, (_, index) =>
    page.exposeFunction(`f${index}`, () => index),
  );
  const outcomes = await Promise.allSettled([gone, ...exposed]);
  const failures = outcomes.flatMap((one) =>
    one.status === 'rejected' ? [String(one.reason)] : [],
  );
  if (failures.length === 0) assert.is(await page.evaluate(`f${CALLS - 1}()`), CALLS - 1);
  await page.close();
  return failures;
}

/** A port that forwards to another one with a delay, in both directions and in order. */
async function openFar(port: number): Promise<AsyncDisposable & { port: number }> {
  const sockets = new Set<Socket>();
  const late = (from: Socket, to: Socket): void => {
    sockets.add(from);
    from.setNoDelay().on('error', () => to.destroy());
    from.on('data', (bytes) => setTimeout(() => to.write(bytes), FAR_MS));
    from.on('close', () => setTimeout(() => to.end(), FAR_MS));
  };
  const server = createTcpServer((near) => {
    const far = connect(port, '127.0.0.1');
    late(near, far);
    late(far, near);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

vanished('files outside the session are refused at once, with the reason', async () => {
  const { recorder } = openBench();
  await using lab = await openLab({ allow: [], recorder });
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
  const warnings = recorder
    .take(1_000, 1 << 30)
    .filter(({ method }) => method === 'Tabern.warning');
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
