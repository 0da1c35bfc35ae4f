/** What the page of a session saves as files, and the session that it starts. */
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { logIn, openConsole, seriousDefects, untilText } from '../../support/clients/console.ts';
import { type Session, startLive } from '../../support/clients/live.ts';
import { until } from '../../support/poll.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';

const journey = suite('journey/console/actions');
const service = shareStack();

const NAME = '<b>in</b>voice\u202efdp.txt';
const SHOWN = '<b>in</b>voice fdp.txt';
const SETTINGS = { keepAlive: true, userMetadata: { team: 'checkout' } };

/** The bytes that a click on the link saves. */
async function saved(page: Page, name: string | RegExp): Promise<Buffer> {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name }).first().click(),
  ]);
  return readFileSync(await download.path());
}

async function release(stack: Stack, { id }: Session): Promise<void> {
  await stack.call(`/v1/sessions/${id}`, { json: { status: 'REQUEST_RELEASE' } });
}

journey('files, the log and the video of a session are saved by links', async () => {
  const stack = await service.get();
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  const { session, browser, page: driven } = await startLive(stack, SETTINGS);
  await driven.goto('data:text/html,Shop'); // the first frame of about:blank is not recorded
  await driven.evaluate(`{
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob(['the bytes']));
    link.download = ${JSON.stringify(NAME)};
    link.click();
  }`);
  await until(async () => {
    const { downloads } = await stack.call<{ downloads: object[] }>(
      `/v1/downloads?sessionId=${session.id}`,
    );
    return downloads.length > 0;
  });
  const address = `${stack.url}/console/p/${stack.projectId}/sessions/${session.id}`;
  await page.goto(`${address}?tab=files`);
  await untilText(page, 'tbody', 'voice');
  match(await page.locator('tbody').innerText(), /[0-9a-f]{8}…[0-9a-f]{4}/);
  is(await page.locator('tbody b').count(), 0, `${SHOWN} is a text`);
  is((await saved(page, /voice/)).toString(), 'the bytes');
  is((await saved(page, 'All files as a zip')).subarray(0, 2).toString(), 'PK');
  equal(await seriousDefects(page), []);

  await browser.close();
  await release(stack, session);
  await untilText(page, 'header', 'ended: the session was released');
  await until(async () => {
    const { pages } = await stack.call<{ pages: object[] }>(`/v1/sessions/${session.id}/replays`);
    return pages.length > 0;
  });
  await page.getByRole('button', { name: 'Download' }).click();
  await page.getByRole('dialog', { name: 'Download' }).waitFor();
  const log = JSON.parse((await saved(page, 'Protocol log (JSON)')).toString()) as object[];
  ok(log.length > 0);
  await page.getByRole('button', { name: 'Prepare the videos' }).click();
  await page.getByRole('link', { name: 'Video of page 0 (MP4)' }).waitFor();
  is((await saved(page, 'Video of page 0 (MP4)')).subarray(4, 8).toString(), 'ftyp');
  equal(await seriousDefects(page), []);
  await page.keyboard.press('Escape');
  equal(person.faults, []);
});

journey('a session is started with the settings of another one, and its page opens', async () => {
  const stack = await service.get();
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  const session = await stack.call<Session>('/v1/sessions', { json: SETTINGS });
  await page.goto(`${stack.url}/console/p/${stack.projectId}/sessions/${session.id}`);
  await page.getByRole('button', { name: 'Start one like this' }).click();
  await page.waitForURL(
    (url) => /\/sessions\/[0-9a-f-]{36}$/.test(url.pathname) && !url.href.includes(session.id),
  );
  await untilText(page, 'header', 'team: checkout');
  const id = new URL(page.url()).pathname.split('/').at(-1) ?? '';
  const started = await stack.call<Session & { keepAlive: boolean }>(`/v1/sessions/${id}`);
  is(started.keepAlive, true);
  await Promise.all([session, started].map((one) => release(stack, one)));
  equal(person.faults, []);
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();
