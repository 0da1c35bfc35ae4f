/** A client drives a real Chrome through the relay, within the command policy. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { probeChrome } from '../../../../runner/machine/browser-self-test.ts';
import { log, openLab, until } from '../../browser/lab.ts';
import { openRaw } from './raw.ts';

const relay = suite('runner/sessions/relay/relay');

async function firstPage(browser: Browser): Promise<Page> {
  const page = browser.contexts()[0]?.pages()[0];
  if (page === undefined) throw new Error('no default page');
  return page;
}

relay('a page of an allowed private block is opened, at 1280 wide', async () => {
  await using lab = await openLab({ allow: ['127.0.0.0/8'] });
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = await firstPage(browser);
  await page.goto(lab.siteUrl);
  assert.is(await page.title(), 'the site');
  assert.is(await page.evaluate('innerWidth'), 1280);
  await browser.close();
  await until(() => lab.relay.clients === 0, 'the client left');
});

relay(
  'a private address is refused in every form, for navigations, fetch and WebSockets',
  async () => {
    await using lab = await openLab({ allow: [] });
    const { port } = new URL(lab.siteUrl);
    const browser = await chromium.connectOverCDP(lab.connectUrl);
    const page = await firstPage(browser);
    const hosts = ['127.0.0.1', 'localhost', '2130706433', '[::ffff:7f00:1]', '0.0.0.0', '0x7f.1'];
    for (const host of hosts) {
      const said = await page.goto(`http://${host}:${port}/`).then(() => 'a page', String);
      assert.match(said, 'net::ERR_ADDRESS_UNREACHABLE', host);
    }
    const init = "{ mode: 'no-cors' }";
    const other = await page.context().newPage(); // in the first one an error page may still come
    const fetched = `fetch('${lab.siteUrl}/fetched', ${init}).then((r) => r.type, String)`;
    assert.is(await other.evaluate(fetched), 'TypeError: Failed to fetch');
    const socket = `new Promise((done) => {
    const socket = new WebSocket('${lab.siteUrl.replace('http', 'ws')}/socket');
    socket.onopen = () => done('open'); socket.onerror = () => done('error');
  })`;
    assert.is(await other.evaluate(socket), 'error');
    assert.equal(lab.asked, []);
    await browser.close();
  },
);

relay('an open page cannot redirect or reach to a closed address', async () => {
  await using lab = await openLab({ allow: ['127.0.0.1/32'] });
  const { port } = new URL(lab.siteUrl);
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = await firstPage(browser);
  const other = await browser.newPage();
  const going = other.goto(`${lab.siteUrl}/to?url=http://127.0.0.2:${port}/closed`);
  assert.match(await going.then(() => 'a page', String), 'net::ERR_ADDRESS_UNREACHABLE');
  await page.goto(lab.siteUrl);
  const socket = `new Promise((done) => {
    const socket = new WebSocket('${lab.siteUrl.replace('http', 'ws')}/socket');
    socket.onmessage = ({ data }) => done(data); socket.onerror = () => done('error');
  })`;
  assert.is(await page.evaluate(socket), 'hello');
  assert.not(lab.asked.includes('/closed'));
  await browser.close();
});

relay('files, internal pages and process commands are refused', async () => {
  await using lab = await openLab({ allow: [] });
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = await firstPage(browser);
  for (const url of ['file:///etc/passwd', 'chrome://version', 'view-source:file:///etc/passwd']) {
    await assertRejects(page.goto(url), /not available/, url);
  }
  const cdp = await browser.newBrowserCDPSession();
  for (const method of ['Browser.crash', 'SystemInfo.getInfo', 'Browser.getBrowserCommandLine']) {
    await assertRejects(cdp.send(method as 'Browser.crash'), /not available/, method);
  }
  await page.setContent('<input type=file>');
  const chosen = page.locator('input').setInputFiles('/etc/hostname');
  await chosen; // Playwright sends the bytes of its own file: fine
  assert.is(await page.evaluate('document.querySelector("input").files.length'), 1);
  await browser.close();
});

relay("a download is stored in the session's directory only", async () => {
  await using lab = await openLab({ allow: ['127.0.0.1/32'] });
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = await firstPage(browser);
  const cdp = await browser.newBrowserCDPSession();
  await cdp.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: '/data/home' });
  await page.goto(`${lab.siteUrl}/file`).catch(() => undefined); // a download ends the navigation
  const dir = join(lab.chrome.dir, 'downloads');
  await until(() => readdirSync(dir).some((name) => !name.includes('.')), 'a download');
  assert.equal(
    readdirSync(join(lab.chrome.dir, 'home')).filter((name) => !name.startsWith('.')),
    [],
  );
  await browser.close();
});

relay('two clients at once see their own sessions only', async () => {
  await using lab = await openLab({ allow: [] });
  const [one, two] = await Promise.all([openRaw(lab.connectUrl), openRaw(lab.connectUrl)]);
  const { targetInfos } = await one.call('Target.getTargets');
  const [page] = targetInfos as { targetId: string }[];
  const attached = await one.call('Target.attachToTarget', { targetId: page?.targetId });
  const sessionId = String(attached['sessionId']);
  await one.call('Runtime.enable', {}, sessionId);
  const stranger = await two.call('Runtime.enable', {}, sessionId).catch(String);
  assert.match(String(stranger), /Session with given id not found/);
  const detach = await two.call('Target.detachFromTarget', { sessionId }).catch(String);
  assert.match(String(detach), /No session with given id/);
  const sum = await one.call('Runtime.evaluate', { expression: '1 + 1' }, sessionId);
  assert.equal((sum['result'] as { value: number }).value, 2);
  assert.ok(one.said.some((text) => text.includes(sessionId)));
  assert.not(two.said.some((text) => text.includes('Runtime.')));
  assert.is(lab.relay.clients, 2);
  await one.call('Browser.close');
  await one.closed;
  await two.call('Browser.getVersion'); // the browser is still there for the other
  two.socket.close();
  await two.closed;
});

relay('a closed relay closes its clients with its code and accepts no more', async () => {
  await using lab = await openLab({ allow: [] });
  const raw = await openRaw(lab.connectUrl);
  lab.relay.close(4000, 'released');
  assert.is(await raw.closed, 4000);
  await until(() => lab.relay.clients === 0, 'the clients are closed');
  await assertRejects(openRaw(lab.connectUrl), /410/, 'a late client');
});

relay('a result of many megabytes arrives complete', async () => {
  await using lab = await openLab({ allow: [] });
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = await firstPage(browser);
  const text = await page.evaluate<string>('"é".repeat(2e7)'); // six bytes each on the wire
  assert.is(text.length, 2e7);
  await browser.close();
});

relay('a message above the limit closes its client, with a reason', async () => {
  await using lab = await openLab({ allow: [] });
  const other = await openRaw(lab.connectUrl);
  const talker = await openRaw(lab.connectUrl);
  talker.socket.send(`{"id":1,"method":"Browser.getVersion","params":{"x":"${'x'.repeat(17e6)}"}}`);
  assert.equal(await talker.closed, 1009);
  assert.equal(talker.why(), 'a message of more than 16 MiB');
  const listener = await openRaw(lab.connectUrl);
  const sessionId = await listener.attach();
  const params = { expression: '"x".repeat(140e6)', returnByValue: true };
  const asked = { id: 99, method: 'Runtime.evaluate', params, sessionId };
  listener.socket.send(JSON.stringify(asked));
  assert.equal(await listener.closed, 1009);
  assert.equal(listener.why(), 'Chrome said more than 128 MiB at once');
  await other.call('Browser.getVersion');
  other.socket.close();
  await other.closed;
});

relay('a client that does not read stalls Chrome, not this process', async () => {
  await using lab = await openLab({ allow: [] });
  const raw = await openRaw(lab.connectUrl);
  const { targetInfos } = await raw.call('Target.getTargets');
  const [page] = targetInfos as { targetId: string }[];
  const attached = await raw.call('Target.attachToTarget', { targetId: page?.targetId });
  const sessionId = String(attached['sessionId']);
  raw.socket.pause();
  const before = process.memoryUsage().rss;
  const params = { expression: '"x".repeat(1e7)', returnByValue: true };
  for (let id = 1000; id < 1020; id += 1) {
    raw.socket.send(JSON.stringify({ id, method: 'Runtime.evaluate', params, sessionId }));
  }
  const other = await openRaw(lab.connectUrl).catch(String); // waits behind the stalled one
  const grown = process.memoryUsage().rss - before;
  assert.ok(grown < 150e6, `grew by ${grown}`); // for 200 MB of responses
  raw.socket.resume();
  await until(() => raw.said.some((text) => text.startsWith('{"id":1019,')), 'the last answer');
  raw.socket.close();
  if (typeof other !== 'string') other.socket.close();
});

relay('full Chromium behaves the same when it is installed', async () => {
  const program = '/usr/lib/chromium/chromium';
  if (!existsSync(program)) return;
  await using lab = await openLab({ allow: ['127.0.0.1/32'], program });
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  assert.is(browser.contexts()[0]?.pages().length, 1);
  const page = await firstPage(browser);
  await page.goto(lab.siteUrl);
  assert.is(await page.title(), 'the site');
  assert.is(await page.evaluate('navigator.webdriver'), false);
  await page.screenshot();
  await browser.close();
});

relay('the probe names the engine', async () => {
  await using lab = await openLab({ allow: [] });
  assert.match(await probeChrome(lab.chrome, log), /Chrome\/\d+/);
});

async function assertRejects(promise: Promise<unknown>, like: RegExp, what: string): Promise<void> {
  const said = await promise.then(() => 'nothing', String);
  assert.match(said, like, what);
}

relay.run();
