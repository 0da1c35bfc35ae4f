/** Actions of a viewer between its connection and the first frame. */
import { once } from 'node:events';
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { openPages } from '../../../../runner/browser/cdp/pages.ts';
import { until } from '../../../support/poll.ts';
import { LIMIT_MS, type LiveLab, look, openLiveLab, type Viewing } from './viewers.ts';

const test = suite('runner/sessions/live-view/viewer');

/** Two pages, numbered in the order of their coming; the second is shown. */
async function openTwo(lab: LiveLab) {
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const pages = await openPages(lab.chrome);
  const context = must(browser.contexts()[0], 'the default context');
  const first = must(context.pages()[0], 'the default page');
  const second = await context.newPage();
  await until(() => pages.open().length === 2, LIMIT_MS);
  const [one, two] = pages.open().map(({ targetId }) => targetId);
  return { browser, first, second, ids: [must(one, 'a tab'), must(two, 'a tab')] as const };
}

/** A viewer that has sent all messages before Chrome could show a frame. */
async function lookAndSay(lab: LiveLab, ...messages: object[]): Promise<Viewing> {
  const { pipe } = lab.chrome;
  pipe.pause(messages);
  const viewing = await look(lab.viewUrl);
  for (const message of messages) viewing.send(message);
  viewing.socket.ping();
  await once(viewing.socket, 'pong'); // all messages before it were received
  assert.is(viewing.frames.length, 0);
  pipe.resume(messages);
  return viewing;
}

async function leave(lab: LiveLab, viewing: Viewing): Promise<void> {
  viewing.socket.close();
  await until(() => lab.live.viewers === 0, LIMIT_MS); // what it was shown is let go
}

test('a URL or a history step before the first frame waits for its tab', async () => {
  await using lab = await openLiveLab();
  const { browser, second } = await openTwo(lab);
  const one = await lookAndSay(lab, { type: 'navigate', url: `${lab.siteUrl}/first` });
  await second.waitForURL(`${lab.siteUrl}/first`);
  await leave(lab, one);
  const another = await lookAndSay(lab, { type: 'history', by: -1 });
  await second.waitForURL('about:blank');
  await leave(lab, another);
  await browser.close();
});

test('an action for one tab is not done on another that is chosen meanwhile', async () => {
  await using lab = await openLiveLab();
  const { browser, first, second, ids } = await openTwo(lab);
  const never = { type: 'navigate', url: `${lab.siteUrl}/never` };
  const viewing = await lookAndSay(lab, never, { type: 'tab', id: ids[0] });
  await until(() => viewing.frames.length > 0, LIMIT_MS);
  viewing.send({ type: 'navigate', url: `${lab.siteUrl}/wanted` });
  await first.waitForURL(`${lab.siteUrl}/wanted`);
  assert.is(second.url(), 'about:blank');
  assert.not.ok(lab.asked.includes('/never'));
  await browser.close();
});

test('a tab chosen again before it was shown is released with its viewer', async () => {
  await using lab = await openLiveLab();
  const { browser, ids } = await openTwo(lab);
  const { pipe } = lab.chrome;
  const { call } = pipe;
  const said: string[] = [];
  pipe.call = (method, ...rest) => {
    said.push(method);
    return call(method, ...rest);
  };
  const count = (method: string): number => said.filter((one) => one === method).length;
  const [other, shown] = ids.map((id) => ({ type: 'tab', id }));
  const viewing = await lookAndSay(lab, must(other, 'a tab'), must(shown, 'a tab'));
  await until(() => viewing.frames.length > 0, LIMIT_MS);
  await leave(lab, viewing);
  assert.is(count('Target.attachToTarget'), 2);
  await until(() => count('Target.detachFromTarget') === 2, LIMIT_MS);
  await browser.close();
});

test.run();
