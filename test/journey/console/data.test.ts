/** Contexts, files and usage in the console, against the real service and a real browser. */
import { readFileSync } from 'node:fs';
import { chromium, type Download, type Page } from 'playwright-core';
import { suite } from 'uvu';
import { equal, is, match } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import {
  defectsInBoth,
  logIn,
  openConsole,
  type Person,
  untilText,
} from '../../support/clients/console.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import type { Session } from '../../support/clients/live.ts';
import { until } from '../../support/poll.ts';
import { manifest, zipOf } from '../../support/runner/zips.ts';
import { startSite } from '../../support/servers/site.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';

const journey = suite('journey/console/data');
const service = shareStack();

const MARKUP = '<img src=x onerror=alert(1)>';
/** Of the uploads that these tests make the service refuse. */
const REFUSED = /status of (?:400|422)/;
const CSV_DAY = /^\d{4}-\d\d-\d\d,/;

type Contexts = { contexts: { id: string; name: string; saves: number; savedBy?: string }[] };
type Usage = {
  days: { at: string; sums: Record<string, number> }[];
  functions: { id: string; name: string; sums: Record<string, number> }[];
};

async function openPage(stack: Stack, path: string): Promise<Person> {
  const person = await openConsole(stack);
  await logIn(person, stack);
  await person.page.goto(`${stack.url}/console/p/${stack.projectId}/${path}`);
  await person.page.locator('#page h1').waitFor();
  return person;
}

async function saved(page: Page, click: () => Promise<void>): Promise<[string, Buffer]> {
  const begun = page.waitForEvent('download');
  await click();
  const download: Download = await begun;
  is(await download.failure(), null);
  return [download.suggestedFilename(), readFileSync(await download.path())];
}

async function isOver(stack: Stack, id: string): Promise<void> {
  await until(async () => {
    const { status } = await stack.call<Session>(`/v1/sessions/${id}`);
    return status !== 'RUNNING' && status !== 'PENDING';
  });
}

journey('a context is made, filled by a session, downloaded, replaced and deleted', async () => {
  const stack = await service.get();
  await using person = await openPage(stack, 'contexts');
  const { page } = person;
  await untilText(page, '.empty pre', '/v1/contexts');
  await page.getByRole('button', { name: 'New context' }).click();
  await page.getByLabel('Name').fill(`shop ${MARKUP}`);
  equal(await defectsInBoth(person), []);
  await page.getByRole('button', { name: 'Make context' }).click();
  const row = page.locator('tbody tr', { hasText: `shop ${MARKUP}` });
  await row.filter({ hasText: 'empty' }).waitFor();

  await row.getByRole('button', { name: 'Start session' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Start session' }).click();
  await page.waitForURL(/\/sessions\/[0-9a-f-]{36}/);
  const session = must(/sessions\/([0-9a-f-]{36})/.exec(page.url())?.[1], 'a session');
  await page.keyboard.press('g');
  await page.keyboard.press('c');
  await row.filter({ hasText: `…${session.slice(-4)}` }).waitFor();
  const { connectUrl } = await stack.call<Session>(`/v1/sessions/${session}`);
  // a session without visitors saves nothing
  const browser = await chromium.connectOverCDP(connectUrl);
  await browser.close();
  await stack.call(`/v1/sessions/${session}`, { json: { status: 'REQUEST_RELEASE' } });
  await isOver(stack, session);
  await row.filter({ hasText: 'by a session' }).waitFor();
  is(await row.getByRole('link', { name: 'by a session' }).getAttribute('title'), session);
  equal(await defectsInBoth(person), []);

  const [name, bytes] = await saved(page, () =>
    row.getByRole('button', { name: 'Download' }).click(),
  );
  match(name, /^[0-9a-f-]{36}\.tbcx$/);
  const upload = async (buffer: Buffer) => {
    await row.getByRole('button', { name: 'Upload' }).click();
    const file = { name, mimeType: 'application/octet-stream', buffer };
    await page.getByLabel('File (.tbcx)').setInputFiles(file);
    await page.getByRole('button', { name: 'Replace content' }).click();
  };
  await upload(Buffer.from('no context'));
  await untilText(page, 'dialog .error', 'not valid');
  await page.keyboard.press('Escape');
  await upload(bytes);
  await until(async () => {
    const { contexts } = await stack.call<Contexts>('/console/api/v1/contexts');
    return contexts[0]?.saves === 2 && contexts[0].savedBy === undefined;
  });
  await row.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await untilText(page, '.empty pre', '/v1/contexts');
  equal((await stack.call<Contexts>('/console/api/v1/contexts')).contexts, []);
  is(await page.locator('#app img').count(), 0);
  equal(
    person.faults.filter((fault) => !REFUSED.test(fault)),
    [],
  );
});

journey('a downloaded file is listed, saved as it is, found by its name, and deleted', async () => {
  const stack = await service.get();
  await using site = await startSite();
  const session = await stack.call<Session>('/v1/sessions', { json: { keepAlive: true } });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const remote = must(browser.contexts()[0]?.pages()[0], 'the default page');
  await remote.goto(site.url);
  await using person = await openPage(stack, 'files');
  const { page } = person;
  await untilText(page, '.empty', 'No file yet');
  const begun = remote.waitForEvent('download');
  await remote.evaluate(`(() => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob(['${MARKUP}']));
    link.download = 'a<img src=x>.html';
    link.click();
  })()`);
  await (await begun).failure();
  const row = page.locator('tbody tr', { hasText: '.html' });
  await row.waitFor(); // by the stream of changes
  const shown = await row.locator('td').first().innerText();
  is(await page.locator('#app img').count(), 0);
  const [name, bytes] = await saved(page, () =>
    row.getByRole('link', { name: 'Download' }).click(),
  );
  equal([bytes.toString(), name.endsWith('.html')], [MARKUP, true]);
  await page.keyboard.press('Control+K');
  await page.locator('dialog input:focus').waitFor();
  await page.keyboard.insertText(shown.slice(0, 2));
  await untilText(page, '#hits', shown);
  await page.keyboard.press('Escape');
  equal(await defectsInBoth(person), []);

  await page.getByRole('button', { name: 'Upload extension' }).click();
  const zip = { name: `${MARKUP}.zip`, mimeType: 'application/zip' };
  const file = page.getByLabel('File (.zip)');
  await file.setInputFiles({ ...zip, buffer: Buffer.from('no zip') });
  await page.getByRole('dialog').getByRole('button', { name: 'Upload' }).click();
  await untilText(page, 'dialog .error', 'is no extension');
  const buffer = await zipOf({ 'manifest.json': manifest() });
  await file.setInputFiles({ ...zip, buffer });
  await page.getByRole('dialog').getByRole('button', { name: 'Upload' }).click();
  const extension = page.locator('.extensions tbody tr', { hasText: `${MARKUP}.zip` });
  await extension.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await untilText(page, '.extensions', 'No extension yet');

  await row.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await untilText(page, '.empty', 'No file yet');
  await browser.close();
  await stack.call(`/v1/sessions/${session.id}`, { json: { status: 'REQUEST_RELEASE' } });
  equal(
    person.faults.filter((fault) => !REFUSED.test(fault)),
    [],
  );
});

journey('usage by day and function is that of the API, and so is its CSV', async () => {
  const stack = await service.get();
  const ids = await publish(stack);
  const { id } = await invoke(stack, must(ids['trivial'], 'the function'));
  await ended(stack, id);
  await using person = await openPage(stack, 'usage');
  const { page } = person;
  await untilText(page, '.sums', 'trivial');
  equal(await defectsInBoth(person), []);
  const { days, functions } = await stack.call<Usage>('/console/api/v1/usage');
  const today = must(days.at(-1), 'today');
  is(today.sums['runs'], 1);
  is(today.sums['browserMinutes'], must(today.sums['sessions'], 'sessions'), 'a minute each');
  const click = (name: string) => () => page.getByRole('button', { name }).click();
  const [, ofDays] = await saved(page, click('Days as CSV'));
  const lines = ofDays.toString().trim().split('\r\n');
  is(lines[0], 'day,sessions,browser_minutes,proxy_bytes,runs,failed_runs');
  is(lines.length, days.length + 1);
  match(lines.at(-1) ?? '', CSV_DAY);
  const cells = (sums: Record<string, number>) =>
    ['sessions', 'browserMinutes', 'proxyBytes', 'runs', 'failedRuns'].map((name) => sums[name]);
  is(lines.at(-1), [today.at.slice(0, 10), ...cells(today.sums)].join());
  const [, ofFunctions] = await saved(page, click('Functions as CSV'));
  const [first] = functions;
  is(
    ofFunctions.toString().trim().split('\r\n')[1],
    [first?.id, first?.name, ...cells(first?.sums ?? {})].join(),
  );
  equal(person.faults, []);
});

journey('no new page is wider than a phone', async () => {
  const stack = await service.get();
  await using person = await openPage(stack, 'contexts');
  const { page } = person;
  await page.setViewportSize({ width: 390, height: 844 });
  for (const path of ['contexts', 'files', 'usage', 'settings']) {
    await page.goto(`${stack.url}/console/p/${stack.projectId}/${path}`);
    await page.locator('#page h1').waitFor();
    const isWide = 'document.documentElement.scrollWidth > innerWidth';
    is(await page.evaluate<boolean>(isWide), false, path);
  }
  equal(person.faults, []);
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();
