/** What a viewer asks for in the moment between its coming and the first picture. */
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/must.ts';
import { openPages } from '../../../runner/chrome/pages.ts';
import { until } from '../../support/poll.ts';
import { LIMIT_MS, look, openLiveLab } from './viewers.ts';

const test = suite('runner/chrome/viewer');

test('an address that it sends at once is gone to when its tab is shown', async () => {
  await using lab = await openLiveLab();
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'the default page');
  const viewing = await look(lab.viewUrl);
  assert.is(viewing.frames.length, 0);
  viewing.send({ type: 'navigate', url: `${lab.siteUrl}/first` });
  await page.waitForURL(`${lab.siteUrl}/first`);
  const another = await look(lab.viewUrl);
  another.send({ type: 'history', by: -1 });
  await page.waitForURL('about:blank');
  await browser.close();
});

test('what it asks of one tab is not done to another that it chooses meanwhile', async () => {
  await using lab = await openLiveLab();
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const context = must(browser.contexts()[0], 'the default context');
  await openPages(lab.chrome); // numbers the pages in the order of their coming
  const first = must(context.pages()[0], 'the default page');
  const second = await context.newPage();
  const before = await look(lab.viewUrl);
  await until(() => before.tabs.length === 2, LIMIT_MS);
  before.socket.close();
  await until(() => lab.live.viewers === 0, LIMIT_MS); // what it was shown is let go
  const viewing = await look(lab.viewUrl);
  viewing.send({ type: 'navigate', url: `${lab.siteUrl}/never` });
  viewing.send({ type: 'tab', id: must(before.tabs[0], 'a tab').id });
  await until(() => viewing.tabs[0]?.isShown === true, LIMIT_MS);
  await until(() => viewing.frames.length > 0, LIMIT_MS);
  viewing.send({ type: 'navigate', url: `${lab.siteUrl}/wanted` });
  await first.waitForURL(`${lab.siteUrl}/wanted`);
  assert.is(second.url(), 'about:blank');
  assert.not.ok(lab.asked.includes('/never'));
  await browser.close();
});

test.run();
