/**
 * The console in a person's own Chrome, against the real service: log in, find a session, watch it,
 * take over, read what its page did. Texts of visited pages are shown as texts.
 */
import type { Page } from 'playwright-core';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import {
  defectsInBoth,
  logIn,
  openConsole,
  rowsOf,
  untilText,
} from '../../support/clients/console.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import { paint, type Session, startLive, untilShows } from '../../support/clients/live.ts';
import { until } from '../../support/poll.ts';
import { startSite } from '../../support/servers/site.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';

const FAILING_PROJECT = {
  'package.json': '{"name":"markup","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
defineFn('markup', async () => {
  console.log('<img src=x onerror=alert(1)> begins');
  throw new Error('<img src=x onerror=alert(1)> failed');
});
`,
};

const journey = suite('journey/console/console');
const service = shareStack();

const MARKUP = '<img src=x onerror=alert(1)>';
const BIDI = 'invoice\u202egnp.exe';
const REQUESTS_MAX = 12;
const LIME = '0,255,0';

journey('a key becomes a login that no script can read, and a wrong key is refused', async () => {
  const stack = await service.get();
  await using person = await openConsole(stack);
  const { page } = person;
  await page.locator('#key').waitFor();
  await page.keyboard.insertText('svc_wrong');
  await page.keyboard.press('Enter');
  await untilText(page, '[role=alert]', 'This key is not valid.');
  await page.keyboard.press('Control+A');
  await logIn(person, stack);
  const readable = await page.evaluate<string>(
    `JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, location.href])`,
  );
  is(readable.includes(stack.apiKey), false);
  is(readable.includes('tabern='), false);
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.locator('#key').waitFor();
  equal(person.faults, []);
});

journey('the first load is small, and an empty project shows its first command', async () => {
  const stack = await service.get();
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  await untilText(page, '.empty pre', `${stack.projectId}`);
  await untilText(page, '.empty pre', '/v1/sessions');
  person.requested();
  await page.reload();
  await page.locator('.empty pre').waitFor();
  const urls = person.requested();
  ok(urls.length <= REQUESTS_MAX, urls.join('\n'));
  equal(person.faults, []);
});

journey('sessions are found, opened and released by keys alone, as they change', async () => {
  const stack = await service.get();
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  await page.keyboard.press('g');
  await page.keyboard.press('s');
  await page.locator('h1', { hasText: 'Sessions' }).waitFor();
  const json = { keepAlive: true, userMetadata: { team: `checkout ${MARKUP}` } };
  const { id } = await stack.call<Session>('/v1/sessions', { json });
  await untilText(page, 'tbody', `team: checkout ${MARKUP}`);
  await untilText(page, 'tbody', 'Running');
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  is(await page.locator('tr[data-chosen=true]').getAttribute('data-id'), id);
  await page.keyboard.press('Enter');
  await page.waitForURL(`**/sessions/${id}`);
  await page.goBack();
  await page.locator('tbody tr').first().waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('r');
  await until(async () => (await rowsOf(page)).join().includes('Ended'));
  is((await stack.call<Session>(`/v1/sessions/${id}`)).status, 'COMPLETED');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+K');
  await page.locator('dialog input:focus').waitFor();
  await page.keyboard.insertText(id.slice(0, 13));
  await untilText(page, '#hits', 'session');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/sessions\//);
  equal(person.faults, []);
});

journey('the filter of a list is its address', async () => {
  const stack = await service.get();
  const json = { keepAlive: true, userMetadata: { team: 'search' } };
  const { id } = await stack.call<Session>('/v1/sessions', { json });
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  const list = `${stack.url}/console/p/${stack.projectId}/sessions`;
  await page.goto(`${list}?text=search`);
  await untilText(page, 'tbody', 'team: search');
  is((await rowsOf(page)).length, 1);
  await page.getByLabel('Text', { exact: true }).fill('no such text');
  await untilText(page, '.empty', 'Nothing matches');
  match(page.url(), /text=no\+such\+text/);
  await page.getByRole('button', { name: 'Clear' }).click();
  await untilText(page, 'tbody', 'team: search');
  is(page.url(), list);
  await page.goto(`${stack.url}/console/p/${crypto.randomUUID()}/sessions`);
  await untilText(page, '.empty', 'belongs to another project');
  await page.goto(`${list}/${crypto.randomUUID()}`);
  await page.locator('[role=alert]').waitFor();
  await stack.call(`/v1/sessions/${id}`, { json: { status: 'REQUEST_RELEASE' } });
  equal(person.faults, []);
});

/** Whether the live view that takes a person's keys has been loaded. */
async function isWritable(page: Page): Promise<boolean> {
  const frame = await (await page.locator('iframe').elementHandle())?.contentFrame();
  if (!frame || frame.url().includes('readonly=true')) return false;
  return (await frame.locator('#screen').count()) > 0;
}

journey('a person watches a session, takes over, types, and hands back', async () => {
  const stack = await service.get();
  const { session, browser, page: remote } = await startLive(stack);
  await paint(remote, LIME);
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  await page.goto(sessionUrl(stack, session));
  const frame = page.frameLocator('iframe');
  await frame.locator('#screen').waitFor();
  await until(() => frame.locator('#over').isHidden());
  const alone = await person.context.newPage();
  await alone.goto(
    must(await page.locator('iframe').getAttribute('src'), 'src').replace(/^/, stack.url),
  );
  await untilShows(alone, LIME);
  await alone.close();

  await remote.setContent('<input autofocus style="position:fixed;inset:0">');
  await frame.locator('#screen').click();
  await page.keyboard.type('unheard');
  await page.getByRole('button', { name: 'Take over' }).click();
  await until(() => isWritable(page)); // the frame before it is hidden, too
  await until(() => frame.locator('#over').isHidden());
  await frame.locator('#screen').click();
  await page.keyboard.type('heard');
  await until(async () => (await remote.inputValue('input')) === 'heard');
  await page.getByRole('button', { name: 'Hand back' }).click();
  match(must(await page.locator('iframe').getAttribute('src'), 'src'), /readonly=true/);
  await browser.close();
  await untilText(page, '.session-head', 'Ended');
  equal(person.faults, []);
});

journey('texts of visited pages are texts: titles, addresses, console lines, names', async () => {
  const stack = await service.get();
  await using site = await startSite();
  const {
    session,
    browser,
    page: remote,
  } = await startLive(stack, {
    userMetadata: { note: `${MARKUP} ${BIDI}` },
  });
  await remote.goto(`${site.url}/rooms?${MARKUP}`);
  const texts = [MARKUP, `${MARKUP} ${BIDI}`, 'javascript:alert(2)'].map((one) =>
    JSON.stringify(one),
  );
  await remote.evaluate(
    `document.title = ${texts[0]}; console.log(${texts[1]}); console.error(${texts[2]})`,
  );
  await remote.goto(`${site.url}/nowhere`);
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  await page.goto(`${sessionUrl(stack, session)}?tab=console`);
  await untilText(page, '.virtual', MARKUP);
  is((await page.locator('.virtual').innerText()).includes('\u202e'), false);
  await page.locator('.virtual-row', { hasText: MARKUP }).click();
  await untilText(page, '.inspector pre', '\\u202e');
  await page.goto(`${sessionUrl(stack, session)}?tab=net&q=status:404`);
  await untilText(page, '.virtual', '/nowhere');
  await page.locator('.virtual').press('j');
  const outside = page.locator('.inspector a.outside');
  await outside.waitFor();
  is(await outside.getAttribute('href'), `${site.url}/nowhere`);
  match(must(await outside.getAttribute('rel'), 'rel'), /noreferrer/);
  match(page.url(), /[?&]e=\d+/);
  const link = page.url();
  await page.goto('about:blank');
  await page.goto(link);
  await untilText(page, '.inspector', '/nowhere');
  is(await page.locator('#app img').count(), 0);
  await browser.close();
  await untilText(page, '.session-head', 'Ended');
  equal(person.faults, []);
});

journey('the recording of an ended session is shown, and its time chosen', async () => {
  const stack = await service.get();
  const { session, browser, page: remote } = await startLive(stack);
  await using site = await startSite();
  await remote.goto(site.url); // a blank page is not recorded
  const longAgo = performance.now();
  await paint(remote, LIME);
  await until(() => performance.now() - longAgo > 3_000); // a recording to seek in
  await remote.evaluate(`console.log('three seconds later')`);
  await paint(remote, '255,0,0');
  await until(() => performance.now() - longAgo > 4_000);
  await browser.close();
  type Replays = { pageCount: number };
  const replays = `/v1/sessions/${session.id}/replays`;
  await until(async () => (await stack.call<Replays>(replays)).pageCount > 0);
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  await page.goto(`${sessionUrl(stack, session)}?tab=console`);
  const video = `document.querySelector('video')`;
  await until(() => page.evaluate<boolean>(`(${video}?.readyState ?? 0) >= 2`));
  await page.getByRole('slider', { name: 'Time' }).focus();
  await page.keyboard.press('End');
  await until(() => page.evaluate<boolean>(`${video}.currentTime > 0.5`));
  await page.keyboard.press('Home');
  await until(() => page.evaluate<boolean>(`${video}.currentTime < 0.2`));
  await page.locator('.virtual-row', { hasText: 'seconds later' }).click();
  await until(() => page.evaluate<boolean>(`${video}.currentTime > 1.5`));
  await untilText(page, '.inspector', 'seconds later');
  equal(person.faults, []);
});

journey('a failed run is one step from the overview, with its cause, steps and lines', async () => {
  const stack = await service.get();
  const ids = await publish(stack, FAILING_PROJECT);
  const { id, sessionId } = await invoke(stack, must(ids['markup'], 'the function'));
  await ended(stack, id);
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  await page.locator('.failing a', { hasText: 'markup' }).click();
  await page.waitForURL(`**/runs/${id}`);
  await untilText(page, '.cause', `${MARKUP} failed`);
  await untilText(page, '.waterfall', 'handler');
  await untilText(page, '.log', `${MARKUP} begins`);
  equal(await defectsInBoth(person), []);
  await page.getByRole('link', { name: 'its session' }).click();
  await page.waitForURL(`**/sessions/${sessionId}?tab=net`);
  await untilText(page, '.timeline .step', 'handler');
  await page.keyboard.press('g');
  await page.keyboard.press('r');
  await untilText(page, 'tbody', `WORKLOAD_ERROR: ${MARKUP} failed`);
  equal(person.faults, []);
});

journey('no page has a serious defect for people who use other means, in both themes', async () => {
  const stack = await service.get();
  await using site = await startSite();
  const { session, browser, page: remote } = await startLive(stack);
  await remote.goto(site.url);
  await using person = await openConsole(stack);
  const { page } = person;
  await page.locator('#key').waitFor();
  equal(await defectsInBoth(person), []);
  await logIn(person, stack);
  const root = `${stack.url}/console/p/${stack.projectId}`;
  const tabs = ['cdp', 'net', 'console', 'pages', 'files', 'events', 'settings'];
  const paths = [
    ...['', '/sessions', '/runs', '/functions', '/webhooks', '/nowhere'],
    ...tabs.map((tab) => `/sessions/${session.id}?tab=${tab}`),
  ];
  for (const path of paths) {
    await page.goto(root + path);
    await page.locator('#page h1, #page h2').first().waitFor();
    await page.waitForLoadState('load');
    equal(await defectsInBoth(person), [], path);
  }
  await page.keyboard.press('?');
  equal(await defectsInBoth(person), []);
  await page.setViewportSize({ width: 390, height: 844 });
  for (const path of ['', `/sessions/${session.id}`]) {
    await page.goto(root + path);
    await page.locator('#page h1, #page h2').first().waitFor();
    const isWide = 'document.documentElement.scrollWidth > innerWidth';
    is(await page.evaluate<boolean>(isWide), false, `${path} is wider than a phone`);
  }
  await browser.close();
  equal(person.faults, []);
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();

function sessionUrl({ url, projectId }: Stack, { id }: { id: string }): string {
  return `${url}/console/p/${projectId}/sessions/${id}`;
}
