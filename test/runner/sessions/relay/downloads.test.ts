/** The directory of a page's downloads, whichever clients were connected. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Lab, openLab, until } from '../../browser/lab.ts';
import { openRaw } from './raw.ts';

const downloads = suite('runner/sessions/relay/downloads');

const CLICK = `{
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob(['x']));
  link.download = 'x.txt';
  link.click();
}`;

/**
 * With a client that sets no download behaviour; returns the last state and the number of kept
 * files.
 */
async function download(lab: Lab): Promise<[string, number]> {
  const { promise: ended, resolve } = Promise.withResolvers<string>();
  const stop = lab.chrome.pipe.onEvent(({ method, params }) => {
    const { state } = params;
    if (method === 'Browser.downloadProgress' && state !== 'inProgress') resolve(String(state));
  });
  const { attach, call, socket, closed } = await openRaw(lab.connectUrl);
  const page = await attach();
  await call('Runtime.evaluate', { expression: CLICK, userGesture: true }, page);
  const state = await ended;
  stop();
  socket.close();
  await closed;
  await until(() => lab.relay.clients === 0, 'it has left');
  return [state, readdirSync(join(lab.chrome.dir, 'downloads')).length];
}

downloads('a client that disconnects does not disable downloads', async () => {
  await using lab = await openLab({ allow: [] });
  assert.equal(await download(lab), ['completed', 1]);
  const playwright = await chromium.connectOverCDP(lab.connectUrl);
  await playwright.close();
  await until(() => lab.relay.clients === 0, 'Playwright has left');
  assert.equal(await download(lab), ['completed', 2]);
  const raw = await openRaw(lab.connectUrl);
  await raw.call('Browser.setDownloadBehavior', { behavior: 'deny' });
  raw.socket.close();
  await raw.closed;
  await until(() => lab.relay.clients === 0, 'who wanted none has left');
  assert.equal(await download(lab), ['completed', 3]);
});

downloads('nor those in a browser context that stays open', async () => {
  await using lab = await openLab({ allow: [] });
  const raw = await openRaw(lab.connectUrl);
  const { browserContextId } = await raw.call('Target.createBrowserContext');
  const set = { behavior: 'allow', downloadPath: '/x', browserContextId };
  await raw.call('Browser.setDownloadBehavior', set);
  const { targetId: first } = await raw
    .call('Target.getTargets')
    .then(({ targetInfos }) => (targetInfos as { targetId: string }[])[0] ?? { targetId: '' });
  await raw.call('Target.createTarget', { url: 'about:blank', browserContextId });
  await raw.call('Target.closeTarget', { targetId: first }); // the other page is the first now
  raw.socket.close();
  await raw.closed;
  await until(() => lab.relay.clients === 0, 'it has left');
  assert.equal(await download(lab), ['completed', 1]);
});

downloads.run();
