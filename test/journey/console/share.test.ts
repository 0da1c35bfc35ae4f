/**
 * A shared session in the browsers of two persons: one makes the link, the other has no login and
 * watches, and cannot do more.
 */
import { suite } from 'uvu';
import { equal, is, ok } from 'uvu/assert';
import { WebSocket } from 'ws';
import { must } from '../../../proto/common/must.ts';
import {
  logIn,
  openConsole,
  type Person,
  seriousDefects,
  untilText,
} from '../../support/clients/console.ts';
import { startLive } from '../../support/clients/live.ts';
import { until } from '../../support/poll.ts';
import { operatorOf } from '../../support/service/operator.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';

const journey = suite('journey/console/share');
const service = shareStack();

const LIME = '0,255,0';
/** The colour in the middle of the screen, rounded because JPEG is lossy. */
const MIDDLE = `(() => {
  const screen = document.querySelector('#screen');
  const { width, height } = screen;
  const { data } = screen.getContext('2d').getImageData(width >> 1, height >> 1, 1, 1);
  return [...data].slice(0, 3).map((one) => Math.round(one / 51) * 51).join();
})()`;
const CUSTOMER = 'metadata of the customer';

/** Makes a link by the dialog, by keys alone after the button. */
async function share(person: Person, stack: Stack, id: string, withLog: boolean) {
  const { page } = person;
  await page.goto(`${stack.url}/console/p/${stack.projectId}/sessions/${id}`);
  await page.getByRole('button', { name: 'Share' }).focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Share the session' });
  await dialog.waitFor();
  if (withLog) {
    await page.getByLabel('Include the log').focus();
    await page.keyboard.press('Space');
  }
  equal(await seriousDefects(page), []);
  await dialog.getByRole('button', { name: 'Make the link' }).focus();
  await page.keyboard.press('Enter');
  const url = await dialog.getByLabel(/^Link, good until/).inputValue();
  equal(await seriousDefects(page), []);
  await page.keyboard.press('Escape');
  return url;
}

journey(
  'the holder of a link watches the session live, then recorded, and has its log',
  async () => {
    const stack = await service.get();
    await using owner = await openConsole(stack);
    await logIn(owner, stack);
    const json = { keepAlive: true, userMetadata: { customer: CUSTOMER } };
    const { session, browser, page: driven } = await startLive(stack, json);
    await driven.evaluate(`console.log('<b>a line</b>')`);
    await driven.goto(`data:text/html,<body style="background:rgb(${LIME})">Shop`);
    const url = await share(owner, stack, session.id, true);

    await using holder = await openConsole(stack, new URL(url).pathname + new URL(url).hash);
    const { page } = holder;
    await page.locator('iframe').waitFor();
    const view = must(
      await (await page.locator('iframe').elementHandle())?.contentFrame(),
      'a view',
    );
    await view.locator('#screen').waitFor();
    await untilText(page, 'header', 'read-only, until');
    await until(async () => (await view.evaluate<string>(MIDDLE)) === LIME);
    is(await page.locator('.rail').count(), 0);
    for (const name of ['Take over', 'Release', 'Share', 'Log out', 'Search']) {
      is(await page.getByRole('button', { name }).count(), 0, name);
    }
    const hrefs = await page.evaluate<string[]>('[...document.links].map(({ href }) => href)');
    const own = `${stack.url}/console/share?`;
    ok(hrefs.length > 0 && hrefs.every((href) => href.startsWith(own)), hrefs.join());
    is((await page.content()).includes(CUSTOMER), false);
    await page.getByRole('link', { name: 'Console' }).click();
    await untilText(page, '.virtual', '<b>a line</b>');
    ok(page.url().endsWith(new URL(url).hash), 'the link stays complete');
    equal(await seriousDefects(page), []);
    await page.emulateMedia({ colorScheme: 'dark' });
    equal(await seriousDefects(page), []);
    await page.reload();
    await untilText(page, '.virtual', '<b>a line</b>');

    await browser.close();
    await stack.call(`/v1/sessions/${session.id}`, { json: { status: 'REQUEST_RELEASE' } });
    await page.locator('iframe').waitFor({ state: 'detached' });
    await page.reload();
    await untilText(page, 'header', 'ended: the session was released');
    await until(async () => {
      const { pages } = await stack.call<{ pages: object[] }>(`/v1/sessions/${session.id}/replays`);
      return pages.length > 0;
    });
    await page.reload();
    const video = page.locator('video');
    await video.waitFor();
    await until(() => page.evaluate(`document.querySelector('video').readyState > 0`));
    equal([...owner.faults, ...holder.faults], []);
  },
);

journey('without the log there is the picture alone, and a link that is cut says so', async () => {
  const stack = await service.get();
  await using owner = await openConsole(stack);
  await logIn(owner, stack);
  const { session, browser } = await startLive(stack, { keepAlive: true });
  const url = new URL(await share(owner, stack, session.id, false));
  await using holder = await openConsole(stack, url.pathname + url.hash);
  const { page } = holder;
  await page.locator('iframe').waitFor();
  await page.getByRole('region', { name: 'Pages' }).waitFor();
  is(await page.getByRole('link', { name: 'CDP' }).count(), 0);
  equal(await seriousDefects(page), []);
  equal(holder.faults, []);
  const refused: [fragment: string, sentence: string][] = [
    ['', 'This link is not complete.'],
    [url.hash.slice(0, -4), 'This link is not valid.'],
  ];
  for (const [fragment, sentence] of refused) {
    await using stranger = await openConsole(stack, url.pathname + fragment);
    await untilText(stranger.page, '[role=alert]', sentence);
    is(await stranger.page.locator('iframe').count(), 0);
    equal(await seriousDefects(stranger.page), []);
  }
  await browser.close();
});

journey('the live view of a link forwards no input, whatever its client sends', async () => {
  const stack = await service.get();
  await using owner = await openConsole(stack);
  await logIn(owner, stack);
  const { session, browser, page: driven } = await startLive(stack, { keepAlive: true });
  await driven.setContent('<input autofocus>');
  const url = new URL(await share(owner, stack, session.id, false));
  const token = url.hash.slice(1);
  const headers = { 'x-tabern-share': token };
  const asked = await fetch(`${stack.url}/console/api/v1/shared/debug`, { headers });
  const { debuggerUrl } = (await asked.json()) as { debuggerUrl: string };
  const view = new URL(debuggerUrl);
  view.searchParams.delete('readonly');
  const address = view.href.replace(/^http(.*)\/live\?/, 'ws$1/view?');
  for (const wanted of [address, `${address}&readonly=false`]) {
    const socket = new WebSocket(wanted);
    const frames: Buffer[] = [];
    socket.on('message', (bytes: Buffer, isBinary: boolean) => {
      if (isBinary) frames.push(bytes);
    });
    await until(() => frames.length > 0);
    socket.send(JSON.stringify({ type: 'text', text: 'typed by a stranger' }));
    socket.send(JSON.stringify({ type: 'navigate', url: 'data:text/html,elsewhere' }));
    socket.send(JSON.stringify({ type: 'ack' })); // answered by a frame of what follows
    const before = frames.length;
    await driven.evaluate(`document.body.style.background = 'rgb(${frames.length}, 90, 200)'`);
    await until(() => frames.length > before);
    is(await driven.evaluate('document.querySelector("input").value'), '');
    ok(!driven.url().startsWith('data:'));
    socket.close();
  }
  await browser.close();
});

journey('a revoked key ends the live view of its links, and their page says so', async () => {
  const stack = await service.get();
  using operator = operatorOf(stack.dataDir);
  const wanted = { project: 'default', name: 'of the link' };
  const made = await operator.operators.createApiKey(wanted, operator.options);
  await using owner = await openConsole(stack);
  await logIn(owner, { ...stack, apiKey: made.key });
  const { session, browser } = await startLive(stack, { keepAlive: true });
  const url = new URL(await share(owner, stack, session.id, false));
  await using holder = await openConsole(stack, url.pathname + url.hash);
  const { page } = holder;
  const view = page.frameLocator('iframe');
  await view.locator('#over').waitFor({ state: 'hidden' });
  const id = must(made.apiKey, 'a key').id;
  await operator.operators.revokeApiKey({ id }, operator.options);
  await untilText(page, '[role=alert]', 'This link has expired. Ask for another.');
  // a list of the page may say so a moment before the page itself
  await until(async () => (await page.locator('iframe').count()) === 0);
  equal(await seriousDefects(page), []);
  await browser.close();
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();
