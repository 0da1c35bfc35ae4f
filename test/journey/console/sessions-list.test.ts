/**
 * The list of sessions and the overview in a person's own Chrome: pictures and pages of running
 * sessions, only while somebody looks; columns that stay hidden; snippets that work as copied.
 */
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import {
  logIn,
  openConsole,
  type Person,
  rowsOf,
  seriousDefects,
  untilText,
} from '../../support/clients/console.ts';
import { shell } from '../../support/clients/journey.ts';
import { END_LIMIT_MS, paint, type Session, startLive } from '../../support/clients/live.ts';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { startSite } from '../../support/servers/site.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/console/sessions-list');

const LIME = '0,255,0';
const RED = '255,0,0';
const HOSTILE = `<img src=x onerror=alert(1)> \u202egnp.exe ${'x'.repeat(1 << 20)}`;
const EVERY_MS = 5_000;
const ROOT = new URL('../../../', import.meta.url).pathname;

const metricsPort = await freePort();
const service = shareStack({ env: { TABERN_METRICS_LISTEN: `127.0.0.1:${metricsPort}` } });

/** Pictures that were captured since the service started. */
async function captures(): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  const counts = text.matchAll(/tabern_thumbnails_total\{outcome="ok"\} (\d+)/g);
  return [...counts].reduce((total, [, count]) => total + Number(count), 0);
}

function listUrl({ url, projectId }: Stack): string {
  return `${url}/console/p/${projectId}/sessions`;
}

/** Waits until the picture of the first row has that colour in its middle. */
async function untilPicture({ page }: Person, colour: string): Promise<void> {
  const picture = page.locator('.thumbnail img').first();
  await picture.waitFor({ timeout: 60_000 });
  await until(async () => (await colourOf(page)) === colour, 60_000);
}

function colourOf(page: Page): Promise<string> {
  return page.evaluate<string>(`(() => {
    const picture = document.querySelector('.thumbnail img');
    const canvas = new OffscreenCanvas(picture.naturalWidth || 1, picture.naturalHeight || 1);
    const context = canvas.getContext('2d');
    context.drawImage(picture, 0, 0);
    const { data } = context.getImageData(canvas.width >> 1, canvas.height >> 1, 1, 1);
    return [...data].slice(0, 3).map((one) => Math.round(one / 51) * 51).join();
  })()`);
}

journey(
  'a running session shows its picture, page, clients and memory while one looks',
  async () => {
    const stack = await service.get();
    await using site = await startSite();
    await using person = await openConsole(stack);
    await logIn(person, stack);
    const { page } = person;
    await untilText(page, '.service', 'Chrome');
    const { session, browser, page: remote } = await startLive(stack, { keepAlive: true });
    await remote.goto(`${site.url}/rooms`);
    await remote.evaluate(`document.title = ${JSON.stringify(HOSTILE)}`);
    await paint(remote, LIME);
    // the runner's next report; the overview shows no picture: none is captured
    await untilText(page, '.service', 'the last start worked');
    is(await captures(), 0);
    await page.goto(listUrl(stack));
    await untilPicture(person, LIME);
    await untilText(page, 'tbody', '<img src=x onerror=alert(1)>');
    await untilText(page, 'tbody', 'MiB'); // the runner measures it from time to time
    const row = must((await rowsOf(page))[0], 'a row');
    match(row, '/rooms');
    is(row.includes('\u202e'), false);
    ok(row.length < 1_000, `${row.length} characters`);
    is(await page.locator('tbody td .foreign img').count(), 0);
    equal(person.faults, []);
    const logged = await stack.call<{ method: string }[]>(`/v1/sessions/${session.id}/logs`);
    equal(
      logged
        .filter(({ method }) => /creencast|attachToTarget/.test(method))
        .map(({ method }) => method),
      [],
    );

    await paint(remote, RED);
    await untilPicture(person, RED);
    // somewhere else: nothing is captured
    await page.goto(`${stack.url}/console/p/${stack.projectId}`);
    await untilText(page, '.service', 'the last start worked');
    const before = await captures();
    const since = performance.now();
    await until(() => performance.now() - since > EVERY_MS + 1_000);
    is(await captures(), before);
    await browser.close();
    const path = `/v1/sessions/${session.id}`;
    await stack.call(path, { json: { status: 'REQUEST_RELEASE' } });
    const isOver = async () => (await stack.call<{ endedAt?: string }>(path)).endedAt;
    await until(isOver, END_LIMIT_MS);
    await page.goto(listUrl(stack));
    await untilText(page, 'tbody', 'the session was released');
    is(await page.locator('.thumbnail').count(), 0);
  },
);

journey(
  'twenty viewers cost one capture, and one picture that is current is not sent',
  async () => {
    const stack = await service.get();
    const { session, browser, page: remote } = await startLive(stack);
    await paint(remote, LIME);
    const path = `/console/api/v1/sessions/${session.id}/thumbnail`;
    const before = await captures();
    const answers = await Promise.all(Array.from({ length: 20 }, () => stack.fetch(path)));
    equal([...new Set(answers.map(({ status }) => status))], [200]);
    is(await captures(), before + 1);
    const { headers } = must(answers[0], 'an answer');
    is(headers.get('content-type'), 'image/jpeg');
    is(headers.get('x-content-type-options'), 'nosniff');
    match(must(headers.get('cache-control'), 'caching'), /^private/);
    const bytes = await Promise.all(answers.map((one) => one.arrayBuffer()));
    ok(bytes.every(({ byteLength }) => byteLength > 100 && byteLength < 64 << 10));
    const etag = must(headers.get('etag'), 'a tag');
    // as a browser asks; Node's fetch would add no-cache
    const headersOf = { 'if-none-match': etag, 'cache-control': 'max-age=0' };
    const same = await stack.fetch(path, { headers: headersOf });
    is(same.status, 304);
    await browser.close();
    const gone = await until(async () => {
      const answer = await stack.fetch(path);
      return answer.status === 404 && answer;
    }, 60_000);
    match(await gone.text(), 'The session has ended.');
  },
);

journey('columns are hidden and stay so, and filters are the address', async () => {
  const stack = await service.get();
  for (const [team, region] of [
    ["o'neill", 'us-west-2'],
    ['search', 'eu-central-1'],
  ]) {
    const json = { region, userMetadata: { team } };
    const { id } = await stack.call<Session>('/v1/sessions', { json });
    await stack.call(`/v1/sessions/${id}`, { json: { status: 'REQUEST_RELEASE' } });
  }
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  await page.goto(listUrl(stack));
  await untilText(page, 'tbody', 'search');
  const heads = async () => (await page.locator('thead').innerText()).split(/\s+/);
  is((await heads()).includes('Region'), false);
  await page.getByRole('button', { name: 'Columns' }).press('Enter');
  await page.getByRole('checkbox', { name: 'Region' }).press('Space');
  await page.getByRole('checkbox', { name: 'Labels' }).press('Space');
  await page.keyboard.press('Escape');
  await until(async () => (await heads()).includes('Region'));
  await page.reload();
  await untilText(page, 'tbody', 'eu-central-1');
  is((await heads()).includes('Labels'), false);
  await page.getByLabel('Metadata key').fill('team');
  await page.getByLabel('Metadata value').fill("o'neill");
  await until(async () => (await rowsOf(page)).length === 1);
  match(page.url(), /key=team&value=o%27neill/);
  await page.goto(`${listUrl(stack)}?region=eu-central-1`);
  await until(async () => (await rowsOf(page)).join().includes('eu-central-1'));
  is((await rowsOf(page)).length, 1);
  await page.goto(`${listUrl(stack)}?contextId=${crypto.randomUUID()}`);
  await untilText(page, '.empty', 'Nothing matches');
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    equal(await seriousDefects(page), []);
  }
  equal(person.faults, []);
});

journey('a session is started from the overview, and its snippets work as copied', async () => {
  const stack = await service.get();
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  await page.keyboard.press('n');
  await page.getByRole('dialog', { name: 'Start a session' }).waitFor();
  equal(await seriousDefects(page), []);
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await page.waitForURL('**/sessions/*');
  await untilText(page, '.session-head', 'Running');
  const [id] = /[-0-9a-f]{36}$/.exec(page.url()) ?? [];
  type Kept = Session & { keepAlive: boolean };
  const started = await stack.call<Kept>(`/v1/sessions/${id}`);
  equal([started.status, started.keepAlive], ['RUNNING', true]);
  // not while its live view is open, whose connection would then be refused
  await page.goto(`${stack.url}/console/p/${stack.projectId}`);
  await stack.call(`/v1/sessions/${id}`, { json: { status: 'REQUEST_RELEASE' } });
  await untilText(page, '.bars', 'released');
  await using site = await startSite();
  await using dir = tempDirectory();
  symlinkSync(join(ROOT, 'node_modules'), join(dir.path, 'node_modules'));
  const path = `${join(ROOT, 'node_modules/.bin')}:${process.env['PATH']}`;
  const copied = async (text: string): Promise<string> => {
    const options = { cwd: dir.path, env: { PATH: path, TABERN_API_KEY: stack.apiKey } };
    const { code, stdout, stderr } = await shell(['sh', '-c', text], options);
    is(code, 0, stderr);
    return stdout;
  };
  const blocks = async (tab: string) => {
    await page.getByRole('tab', { name: tab, exact: true }).click();
    return page
      .locator('#snippet figure')
      .evaluateAll((all) =>
        all.map((one) => [
          one.getAttribute('data-name') ?? '',
          one.querySelector('pre')?.innerText ?? '',
        ]),
      );
  };
  const [[, curl = ''] = []] = await blocks('curl');
  const made = JSON.parse(await copied(curl)) as Kept & { projectId: string };
  equal([made.keepAlive, made.projectId], [true, stack.projectId]);
  await stack.call(`/v1/sessions/${made.id}`, { json: { status: 'REQUEST_RELEASE' } });
  for (const tab of ['Playwright', 'Puppeteer']) {
    const all = await blocks(tab);
    const [, [name = '', program = ''] = [], [, command = ''] = []] = all;
    match(must(all[0], 'a command')[1] ?? '', /^npm install [\w-]+$/);
    // a page of this machine: the test has no other network
    const own = program.replace('https://example.com/', `${site.url}/rooms`);
    writeFileSync(join(dir.path, name), own);
    match(await copied(command), /^[-0-9a-f]{36} Rooms$/m, tab);
  }
  await blocks('Stagehand');
  await untilText(page, '#snippet', `BROWSERBASE_PROJECT_ID=${stack.projectId}`);
  await blocks('Function');
  await untilText(page, '#snippet', 'tabern publish index.ts');
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    equal(await seriousDefects(page), []);
  }
  equal(person.faults, []);
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();
