/** The pages of a real Chrome: their numbers, opening and closing; clients are not affected. */
import { type Browser, type Page as ClientPage, chromium } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openPages } from '../../../../runner/browser/cdp/pages.ts';
import { openRaw } from '../../sessions/relay/raw.ts';
import { openLab, PATIENT, until } from '../lab.ts';

const pages = suite('runner/browser/cdp/pages');

async function firstPage(browser: Browser): Promise<ClientPage> {
  const page = browser.contexts()[0]?.pages()[0];
  if (page === undefined) throw new Error('no default page');
  return page;
}

pages('pages are numbered in order of opening, popups and other contexts included', async () => {
  await using lab = await openLab({ allow: ['127.0.0.1/32'] });
  const list = await openPages(lab.chrome);
  const ended: number[] = [];
  const began: number[] = [];
  list.onPage((page) => {
    began.push(page.id);
    void page.closed.then(() => ended.push(page.id));
  });
  assert.equal(began, [0]); // the default page, at once
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = await firstPage(browser);
  await page.goto(lab.siteUrl);
  await Promise.all([page.waitForEvent('popup'), page.evaluate('void open("/popup")')]);
  const other = await (await browser.newContext()).newPage();
  assert.equal(began, [0, 1, 2]);
  await page.close();
  await until(() => ended.includes(0), 'the end of the first');
  const after = await (await browser.newContext()).newPage();
  assert.equal(began, [0, 1, 2, 3]);
  assert.equal(
    list.open().map(({ id }) => id),
    [1, 2, 3],
  );
  await Promise.all([other.close(), after.close()]);
  await browser.close();
});

pages('a script that opens a popup continues without a client that resumes the popup', async () => {
  for (const launch of [{}, { program: '/usr/bin/chromium' }]) {
    await using lab = await openLab({ allow: [], ...launch });
    const list = await openPages(lab.chrome);
    const raw = await openRaw(lab.connectUrl);
    const page = await raw.attach();
    const expression = `String(open('about:blank', '', 'width=640,height=480') !== null)`;
    const asked = { expression, userGesture: true, returnByValue: true };
    const { result } = await raw.call('Runtime.evaluate', asked, page);
    assert.is((result as { value?: unknown }).value, 'true');
    await until(() => list.open().length === 2, 'the popup is a page');
    raw.socket.close();
    await raw.closed;
  }
});

pages('a page that a client brings to the front is the active one', async () => {
  await using lab = await openLab({ allow: [] });
  const list = await openPages(lab.chrome);
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = await firstPage(browser);
  await browser.contexts()[0]?.newPage();
  assert.is(list.active?.id, 1);
  await page.bringToFront();
  assert.is(list.active?.id, 0);
  const whole = await browser.newBrowserCDPSession();
  await whole.send('Target.activateTarget', { targetId: list.open()[1]?.targetId ?? '' });
  assert.is(list.active?.id, 1);
  await whole.send('Target.activateTarget', { targetId: 'none' }).catch(() => undefined);
  assert.is(list.active?.id, 1);
  await browser.close();
});

pages('changes of address, title and active page are reported', async () => {
  await using lab = await openLab({ allow: ['127.0.0.1/32'] });
  const list = await openPages(lab.chrome);
  let changes = 0;
  const stop = list.onChange(() => {
    changes += 1;
  });
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = await firstPage(browser);
  await page.goto(`${lab.siteUrl}/there`);
  await until(() => list.active?.url === `${lab.siteUrl}/there`, 'the address');
  await list.refresh();
  assert.is(list.active?.title, 'the site');
  const second = await browser.contexts()[0]?.newPage();
  assert.is(list.active?.id, 1);
  list.activate(list.open()[0]?.targetId ?? '');
  assert.is(list.active?.id, 0);
  list.activate('nobody');
  assert.is(list.active?.id, 0);
  list.activate(list.open()[1]?.targetId ?? '');
  await second?.close();
  await until(() => list.open().length === 1, 'the end of the second');
  assert.is(list.active?.id, 0);
  assert.ok(changes > 4);
  stop();
  await browser.close();
});

pages('two callers share one list, and its sessions work beside a client', async () => {
  await using lab = await openLab({ allow: ['127.0.0.1/32'] });
  const [list, again] = await Promise.all([openPages(lab.chrome), openPages(lab.chrome)]);
  assert.is(list, again);
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = await firstPage(browser);
  await page.evaluate('globalThis.mark = 7');
  const expression = 'globalThis.mark';
  const answer = await list.active?.session.call('Runtime.evaluate', { expression }, PATIENT);
  assert.equal(answer?.['result'], { type: 'number', value: 7, description: '7' });
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: true });
  assert.is(list.open().length, 1);
  assert.is(browser.contexts().length, 1);
  assert.is(browser.contexts()[0]?.pages().length, 1);
  await browser.close();
});

pages('a preparation runs before the code of a page, and a failing one holds no page', async () => {
  await using lab = await openLab({ allow: ['127.0.0.1/32'] });
  const list = await openPages(lab.chrome);
  const source = 'globalThis.prepared = true';
  await list.prepare(({ session }) =>
    Promise.all([
      session.call('Page.enable'),
      session.call('Page.addScriptToEvaluateOnNewDocument', { source }),
    ]),
  );
  await list.prepare(() => Promise.reject(new Error('of the preparation')));
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = await firstPage(browser);
  await page.goto(lab.siteUrl);
  assert.is(await page.evaluate('globalThis.prepared'), true);
  const popping = page.waitForEvent('popup');
  await page.evaluate('void open("/popup")');
  const popup = await popping;
  await popup.waitForURL('**/popup'); // not the empty document before it
  assert.is(await popup.evaluate('globalThis.prepared'), true);
  await browser.close();
});

pages(
  'a page that hangs or crashes keeps its number, and other pages are reported as before',
  async () => {
    await using lab = await openLab({ allow: ['127.0.0.1/32'] });
    const list = await openPages(lab.chrome);
    const browser = await chromium.connectOverCDP(lab.connectUrl);
    const page = await firstPage(browser);
    const [first] = list.open();
    const hung = first?.session.call('Runtime.evaluate', { expression: 'for (;;) {}' });
    const second = await (await browser.newContext()).newPage();
    await second.goto(lab.siteUrl);
    assert.equal(
      list.open().map(({ id }) => id),
      [0, 1],
    );
    assert.match(await String(await hung?.catch(String)), /2000 ms/);
    const crashed = page.waitForEvent('crash');
    await first?.session.call('Page.crash').catch(() => undefined); // never answered
    await crashed;
    assert.is(list.open().length, 2);
    await lab.chrome.pipe.call('Target.getTargets');
    await browser.close();
  },
);

pages('the end of Chrome closes its pages and settles all calls', async () => {
  await using lab = await openLab({ allow: [] });
  const list = await openPages(lab.chrome);
  const [page] = list.open();
  lab.chrome.kill();
  await page?.closed;
  assert.equal(list.open(), []);
  assert.match(String(await page?.session.call('Page.enable').catch(String)), /gone/);
  await lab.chrome.exited;
});

pages.run();
