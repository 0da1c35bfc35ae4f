/**
 * The live view in a viewer's own browser, alone or in a customer's page: it shows the session's
 * page and passes input to it.
 */
import { once } from 'node:events';
import { suite } from 'uvu';
import { equal, is, match, not, ok } from 'uvu/assert';
import { WebSocket } from 'ws';
import { must } from '../../../proto/common/must.ts';
import {
  embed,
  liveViewOf,
  openLine,
  openPerson,
  paint,
  startLive,
  untilShows,
  viewUrlOf,
} from '../../support/clients/live.ts';
import { until } from '../../support/poll.ts';
import { startSite } from '../../support/servers/site.ts';
import { shareStack } from '../../support/service/stack.ts';

const journey = suite('journey/sessions/live-view');
const service = shareStack();

const LIMIT_MS = 30_000;
const RED = '255,0,0';
const BLUE = '0,0,255';
const LIME = '0,255,0';
const GONE = 'browserbase-disconnected';

journey('a viewer sees the page, clicks, types, closes a dialog and sees a new tab', async () => {
  const stack = await service.get();
  await using person = await openPerson();
  const { browser, page, view } = await startLive(stack);
  await page.setContent(`<body style="margin:0;background:rgb(${RED})">
    <input style="position:fixed;top:0;left:0;width:400px;height:100px">`);
  await person.page.goto(view.debuggerFullscreenUrl);
  await untilShows(person.page, RED);
  await person.page.mouse.click(200, 50);
  await person.page.keyboard.type('Grüße, 世界');
  await until(async () => (await page.inputValue('input')) === 'Grüße, 世界', LIMIT_MS);
  await person.page.keyboard.press('Control+A');
  await person.page.keyboard.press('Backspace');
  await until(async () => (await page.inputValue('input')) === '', LIMIT_MS);

  page.on('dialog', () => undefined); // or Playwright would dismiss it before the viewer sees it
  const answered = page.evaluate(`confirm('go on?')`);
  const accept = person.page.locator('#accept');
  await accept.waitFor();
  is(await person.page.locator('#question').innerText(), 'go on?');
  await accept.click();
  is(await answered, true);

  const second = await must(browser.contexts()[0], 'a context').newPage();
  await paint(second, BLUE);
  await untilShows(person.page, BLUE);
  await second.close();
  await untilShows(person.page, RED);
  await browser.close();
});

journey('a sandboxed frame of another origin shows the live view and its end', async () => {
  const stack = await service.get();
  await using person = await openPerson();
  const { session, browser, page, view } = await startLive(stack);
  await paint(page, RED);
  for (const sandbox of ['allow-same-origin allow-scripts', 'allow-scripts']) {
    await using customer = await embed(`${view.debuggerFullscreenUrl}&navbar=false`, sandbox);
    not.equal(new URL(customer.url).origin, new URL(stack.url).origin);
    await person.page.goto(customer.url);
    await untilShows(person.page, RED);
  }
  await using customer = await embed(view.debuggerUrl, 'allow-same-origin allow-scripts');
  await person.page.goto(customer.url);
  await untilShows(person.page, RED);
  equal(await person.page.evaluate('told'), []);
  await stack.call(`/v1/sessions/${session.id}`, { json: { status: 'REQUEST_RELEASE' } });
  await until(async () => ((await person.page.evaluate('told')) as string[]).length > 0, LIMIT_MS);
  equal(await person.page.evaluate('told'), [GONE]);
  const frame = must(person.page.frames()[1], 'the frame');
  match(await frame.innerText('#over'), /The session has ended/);

  // a later viewer receives the reason too
  await using late = await embed(view.debuggerUrl, 'allow-scripts');
  await person.page.goto(late.url);
  await until(async () => ((await person.page.evaluate('told')) as string[]).length > 0, LIMIT_MS);
  equal(await person.page.evaluate('told'), [GONE]);
  await browser.close();
});

journey('the live view has tabs and an address bar, unless navbar=false', async () => {
  await using site = await startSite();
  const stack = await service.get();
  await using person = await openPerson();
  const { browser, page, view } = await startLive(stack);
  await person.page.goto(view.debuggerUrl);
  const address = person.page.locator('#address');
  await address.waitFor();
  await address.fill(site.url.replace('http://', ''));
  await address.press('Enter');
  await page.waitForURL(`${site.url}/`);
  await until(async () => (await address.inputValue()) === `${site.url}/`, LIMIT_MS);
  await address.fill('file:///etc/passwd');
  await address.press('Enter');
  await until(() => person.page.locator('#notice').isVisible(), LIMIT_MS);
  is(page.url(), `${site.url}/`);

  await must(browser.contexts()[0], 'a context').newPage();
  const tabs = person.page.locator('#tabs button');
  await until(async () => (await tabs.count()) === 2, LIMIT_MS);
  await tabs.first().click();
  await until(async () => (await tabs.first().getAttribute('aria-selected')) === 'true', LIMIT_MS);
  await person.page.goto(`${view.debuggerUrl}&navbar=false`);
  await until(() => person.page.locator('#over').isHidden(), LIMIT_MS);
  is(await address.isVisible(), false);
  await browser.close();
});

journey('an address entered before the connection opens is navigated to afterwards', async () => {
  await using site = await startSite();
  const stack = await service.get();
  await using person = await openPerson();
  const { browser, page, view } = await startLive(stack);
  const line = Promise.withResolvers<void>();
  await person.page.routeWebSocket(/\/view\?/, async (socket) => {
    await line.promise;
    socket.connectToServer();
  });
  await person.page.goto(view.debuggerUrl);
  const address = person.page.locator('#address');
  await address.fill(site.url);
  await address.press('Enter');
  line.resolve();
  await page.waitForURL(`${site.url}/`);
  await browser.close();
});

journey('each open tab has its own links', async () => {
  const stack = await service.get();
  await using person = await openPerson();
  const { session, browser, page } = await startLive(stack);
  await paint(page, RED);
  await page.evaluate(`document.title = 'the first'`);
  const second = await must(browser.contexts()[0], 'a context').newPage();
  await paint(second, BLUE);
  const { pages } = await liveViewOf(stack, session);
  is(pages.length, 2);
  const first = must(
    pages.find(({ title }) => title === 'the first'),
    'the first tab',
  );
  is(first.url, 'about:blank');
  ok(URL.canParse(first.faviconUrl), first.faviconUrl);
  await person.page.goto(first.debuggerFullscreenUrl);
  await untilShows(person.page, RED);
  await paint(page, LIME);
  await untilShows(person.page, LIME);
  await browser.close();
});

journey('a lost connection is opened again', async () => {
  const stack = await service.get();
  await using person = await openPerson();
  await using line = await openLine(stack.url);
  const { browser, page, view } = await startLive(stack);
  await paint(page, RED);
  await person.page.goto(view.debuggerFullscreenUrl.replace(stack.url, line.url));
  await untilShows(person.page, RED);
  line.cut();
  await paint(page, BLUE);
  await untilShows(person.page, BLUE);
  await browser.close();
});

journey('a link expires, and gives no access to another session', async () => {
  const stack = await service.get();
  await using person = await openPerson();
  const own = await startLive(stack);
  const other = await startLive(stack);
  const short = await liveViewOf(stack, own.session, '?expiresIn=2');
  const watching = new WebSocket(viewUrlOf(short));
  const [code, reason] = await once(watching, 'close');
  is(`${code} ${reason}`, '1008 the live view has expired');
  is(await refusalOf(viewUrlOf(short)), 410);
  is((await fetch(short.debuggerUrl)).status, 410);
  await person.page.goto(short.debuggerFullscreenUrl);
  const over = person.page.locator('#over');
  await until(async () => /has expired/.test(await over.innerText()), LIMIT_MS);

  const forged = viewUrlOf(own.view).replace(/token=./, (text) =>
    text === 'token=A' ? 'token=B' : 'token=A',
  );
  is(await refusalOf(forged), 401);
  const theirs = must(other.view.pages[0], "the other session's tab").id;
  const stranger = new WebSocket(`${viewUrlOf(own.view)}&target=${theirs}`);
  let pictures = 0;
  stranger.on('message', (_bytes, isBinary) => {
    if (isBinary) pictures += 1;
  });
  const [refused] = await once(stranger, 'close');
  is(refused, 1000);
  is(pictures, 0);
  await Promise.all([own.browser.close(), other.browser.close()]);
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();

/** The HTTP status of a refused upgrade. */
async function refusalOf(url: string): Promise<number> {
  const socket = new WebSocket(url).on('error', () => undefined);
  const [, response] = await once(socket, 'unexpected-response');
  response.resume();
  return response.statusCode;
}
