/** A session's settings: the size of pages and their allowed domains. */
import CDP from 'chrome-remote-interface';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { allowing, keepToDomains } from '../../../runner/browser/cdp/allowed-domains.ts';
import { drawSelects } from '../../../runner/browser/cdp/drawn-selects.ts';
import { openPages } from '../../../runner/browser/cdp/pages.ts';
import { setViewport } from '../../../runner/browser/cdp/viewport.ts';
import { until } from '../../support/poll.ts';
import { openLab } from '../browser/lab.ts';

const settings = suite('runner/sessions/settings');

const ENGINES = [
  ['headless-shell', {}],
  ['chromium', { program: '/usr/bin/chromium' }],
] as const;

async function targetsOf({ Target }: CDP.Client) {
  const { targetInfos } = await Target.getTargets({});
  return targetInfos.filter(({ type }) => type === 'page');
}

/** One client with a page of its own, and how to evaluate in any page. */
async function openClient(connectUrl: string) {
  const client = await CDP({ target: connectUrl, local: true });
  const { targetInfos } = await client.Target.getTargets({});
  const first = targetInfos.find(({ type }) => type === 'page')?.targetId ?? '';
  const attached = async (targetId: string) => {
    const { sessionId } = await client.Target.attachToTarget({ targetId, flatten: true });
    const call = (method: string, params: object = {}) =>
      client.send(method as never, params as never, sessionId) as Promise<Record<string, unknown>>;
    return {
      call,
      async value(expression: string): Promise<unknown> {
        const { result } = await call('Runtime.evaluate', { expression, returnByValue: true });
        return (result as { value?: unknown }).value;
      },
    };
  };
  return { client, first, attached };
}

for (const [name, launch] of ENGINES) {
  settings(`${name}: every page has the requested size`, async () => {
    await using lab = await openLab({ allow: ['127.0.0.1/32'], ...launch });
    await setViewport(lab.chrome, await openPages(lab.chrome), { width: 1000, height: 700 });
    const { client, first, attached } = await openClient(lab.connectUrl);
    const size = '[innerWidth, innerHeight]';
    assert.equal(await (await attached(first)).value(`JSON.stringify(${size})`), '[1000,700]');
    const { targetId } = await client.Target.createTarget({ url: 'about:blank' });
    const page = await attached(targetId);
    // the window of a new page is sized a moment after it opened
    const deadline = Date.now() + 60_000;
    let seen: unknown;
    while (seen !== '[1000,700]' && Date.now() < deadline) {
      seen = await page.value(`JSON.stringify(${size})`);
    }
    assert.is(seen, '[1000,700]');
    await client.close();
  });

  settings(`${name}: the screen is as large as the window, whatever the viewport`, async () => {
    await using lab = await openLab({ allow: ['127.0.0.1/32'], ...launch });
    const { client, first, attached } = await openClient(lab.connectUrl);
    const page = await attached(first);
    const holds = () =>
      page.value('screen.availWidth >= outerWidth && screen.availHeight >= outerHeight');
    const size = () => page.value('JSON.stringify([innerWidth, innerHeight])');
    assert.equal([await size(), await holds()], ['[1280,800]', true]);
    const [width, height] = [1600, 1300];
    await setViewport(lab.chrome, await openPages(lab.chrome), { width, height });
    await until(async () => (await size()) === `[${width},${height}]`);
    assert.is(await holds(), true);
    await client.close();
  });

  settings(`${name}: a popup keeps the size that its page set`, async () => {
    await using lab = await openLab({ allow: ['127.0.0.1/32'], ...launch });
    await setViewport(lab.chrome, await openPages(lab.chrome), { width: 1000, height: 700 });
    const { client, first, attached } = await openClient(lab.connectUrl);
    const opener = await attached(first);
    const before = new Set((await targetsOf(client)).map(({ targetId }) => targetId));
    const expression = `void open('about:blank', '', 'popup,width=640,height=480')`;
    await opener.call('Runtime.evaluate', { expression, userGesture: true });
    const isPopup = ({ targetId }: { targetId: string }) => !before.has(targetId);
    const { targetId } = await until(async () => (await targetsOf(client)).find(isPopup));
    const popup = await attached(targetId);
    // Chromium gives every window the size of its command line, whatever size a page requests: such
    // a popup has the viewport of the pages
    const own = name === 'chromium' ? 1000 : 640;
    await until(async () => (await popup.value('innerWidth')) === own);
    // a page that opens later has its size, and the popup still has its own
    const later = await attached(
      (await client.Target.createTarget({ url: 'about:blank' })).targetId,
    );
    await until(async () => (await later.value('innerWidth')) === 1000);
    assert.is(await popup.value('innerWidth'), own);
    await client.close();
  });
}

/** Opens a <select> by a click; returns the height of its first option in the page. */
async function openSelect(options: { program?: string }, isDrawn: boolean): Promise<unknown> {
  await using lab = await openLab({ ...options, allow: ['127.0.0.1/32'] });
  if (isDrawn) await drawSelects(await openPages(lab.chrome));
  const { client, first, attached } = await openClient(lab.connectUrl);
  const page = await attached(first);
  await page.call('Page.navigate', { url: `${lab.siteUrl}/select` });
  await until(() => page.value(`document.readyState === 'complete'`));
  await page.value(`document.body.innerHTML =
    '<select style="width:200px"><option>one<option>two<option>three</select>'`);
  for (const type of ['mousePressed', 'mouseReleased']) {
    const at = { x: 50, y: 18, button: 'left', clickCount: 1 };
    await page.call('Input.dispatchMouseEvent', { ...at, type });
  }
  await until(() => page.value(`document.querySelector('select').matches(':open')`));
  const height = await page.value(
    `document.querySelector('option').getBoundingClientRect().height`,
  );
  await client.close();
  return height;
}

for (const [name, launch] of ENGINES) {
  settings(`${name}: the list of a <select> is in the page with the polyfill only`, async () => {
    assert.ok(Number(await openSelect(launch, true)) > 10);
    assert.is(await openSelect(launch, false), 0);
  });
}

settings('a main frame stays in its domains: typed URLs, links, redirects', async () => {
  await using lab = await openLab({ allow: ['127.0.0.1/32'] });
  await keepToDomains(await openPages(lab.chrome), ['127.0.0.1']);
  const { client, first, attached } = await openClient(lab.connectUrl);
  const page = await attached(first);
  const outside = lab.siteUrl.replace('127.0.0.1', 'localhost');
  const inside = await page.call('Page.navigate', { url: `${lab.siteUrl}/in` });
  assert.is(inside['errorText'], undefined);
  for (const url of [`${outside}/out`, `${lab.siteUrl}/to?url=${outside}/hop`]) {
    const { errorText } = await page.call('Page.navigate', { url });
    assert.match(String(errorText), /BLOCKED_BY_CLIENT/, url);
  }
  const { targetId } = await client.Target.createTarget({ url: 'about:blank' });
  const another = await attached(targetId);
  const { errorText } = await another.call('Page.navigate', { url: `${outside}/new` });
  assert.match(String(errorText), /BLOCKED_BY_CLIENT/);
  assert.ok(lab.asked.includes('/in'));
  assert.not.ok(lab.asked.some((path) => ['/out', '/hop', '/new'].includes(path)));
  await client.close();
});

settings('subframes and fetches are not restricted', async () => {
  await using lab = await openLab({ allow: ['127.0.0.1/32', '::1/128'] });
  await keepToDomains(await openPages(lab.chrome), ['127.0.0.1']);
  const { client, first, attached } = await openClient(lab.connectUrl);
  const page = await attached(first);
  await page.call('Page.navigate', { url: `${lab.siteUrl}/in` });
  // its answer comes before there is a body to put a frame into
  const state = 'location.pathname + " " + document.readyState';
  await until(async () => (await page.value(state)) === '/in complete');
  const outside = lab.siteUrl.replace('127.0.0.1', 'localhost');
  const frame = `new Promise((done) => {
    const frame = document.createElement('iframe');
    frame.onload = () => done('loaded');
    frame.src = '${outside}/frame';
    document.body.append(frame);
  })`;
  const fetched = `fetch('${outside}/fetched', { mode: 'no-cors' })`;
  for (const expression of [frame, fetched]) {
    const answer = await page.call('Runtime.evaluate', { expression, awaitPromise: true });
    assert.is(answer['exceptionDetails'], undefined, JSON.stringify(answer));
  }
  assert.ok(lab.asked.includes('/frame'));
  assert.ok(lab.asked.includes('/fetched'));
  await client.close();
});

settings('a domain allows its subdomains, and no domain with the same ending', () => {
  const isAllowed = allowing(['Example.com', '*.star.test', 'bücher.test']);
  for (const url of [
    'https://example.com/a',
    'http://www.example.com:81/',
    'https://example.com./',
    'https://a.star.test/',
    'https://xn--bcher-kva.test/',
    'about:blank',
  ]) {
    assert.ok(isAllowed(url), url);
  }
  for (const url of ['https://notexample.com/', 'https://example.com.evil.test/', 'http://a/']) {
    assert.not(isAllowed(url), url);
  }
});

settings.run();
