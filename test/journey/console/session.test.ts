/**
 * The time of a session's page, in a person's own Chrome: the picture, the log and the timeline
 * show the same moment, a moment has an address, and what happened is a file.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { logIn, openConsole, type Person, untilText } from '../../support/clients/console.ts';
import { harFaults } from '../../support/clients/har.ts';
import { type Session, startLive } from '../../support/clients/live.ts';
import { until } from '../../support/poll.ts';
import { startSite } from '../../support/servers/site.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/console/session');
const service = shareStack();

/** Ours: a person sees no difference. */
const SYNC_MAX_MS = 150;
const BITS = 10;
const TICK_MS = 400;
const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47]);
/**
 * Columns that show a number in binary. It is logged while it is small, and again after a pause in
 * which only the picture changes.
 */
const COUNTER = `(() => {
  document.body.style.cssText = 'margin:0;display:flex;height:100vh';
  const bits = Array.from({ length: ${BITS} }, () => document.createElement('div'));
  for (const bit of bits) bit.style.flex = '1';
  document.body.replaceChildren(...bits);
  let count = 0;
  setInterval(() => {
    count += 1;
    bits.forEach((bit, at) => { bit.style.background = (count >> at) & 1 ? '#000' : '#fff'; });
    if (count < 10 || (count > 30 && count < 40)) console.log('count ' + count + ' shown');
  }, ${TICK_MS});
})()`;
const VIDEO = `document.querySelector('video')`;
/** The number that the video shows; -1 while it has no frame. */
const READ = `(() => {
  const video = ${VIDEO};
  if (video === null || video.readyState < 2 || video.seeking) return -1;
  const { videoWidth: width, videoHeight: height } = video;
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d');
  context.drawImage(video, 0, 0);
  let count = 0;
  for (let at = 0; at < ${BITS}; at += 1) {
    const [red] = context.getImageData((at + 0.5) * width / ${BITS}, height / 2, 1, 1).data;
    if (red < 128) count += 1 << at;
  }
  return count;
})()`;

type Replays = { pages: { startTimeMs: number }[]; pageCount: number };

journey('picture, log and timeline show one moment, running and ended, folded too', async () => {
  const stack = await service.get();
  await using site = await startSite();
  const { session, browser, page: remote } = await startLive(stack, { keepAlive: true });
  await remote.goto(site.url);
  await remote.evaluate(COUNTER);
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  await person.context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.goto(`${urlOf(stack, session)}?tab=console`);
  await untilText(page, '.virtual', 'count 39 shown');
  await page.locator('.virtual').press('Home');
  is(await page.locator('iframe').count(), 1, 'choosing an entry keeps the live picture');
  await page.getByRole('button', { name: 'Show the picture of this moment' }).click();
  await untilText(page, '.picture', 'Nothing is recorded yet');
  await page.keyboard.press('l');
  await page.locator('iframe').waitFor();
  await page.keyboard.press('t');
  await untilText(page, '.mine-note', 'You have the mouse');
  await page.keyboard.press('Escape');
  await page.locator('.part.hand').waitFor();
  await recorded(stack, session);
  await seeksBack(person);
  await browser.close();
  await stack.call(`/v1/sessions/${session.id}`, { json: { status: 'REQUEST_RELEASE' } });
  await untilText(page, '.session-head', 'Ended');
  await page.goto(`${urlOf(stack, session)}?tab=console`);
  await until(async () => (await page.evaluate<number>(READ)) >= 0);

  const { pages } = await stack.call<Replays>(`/v1/sessions/${session.id}/replays`);
  const begun = must(pages[0], 'the page').startTimeMs / 1_000;
  const differences: number[] = [];
  for (const count of [4, 8, 33, 37]) {
    const at = await choose(page, `count ${count} shown`);
    differences.push(await differenceOf(page, { count, at: at - begun }));
  }
  console.log(`picture after log: ${differences.join(', ')} ms`);
  ok(Math.min(...differences.map(Math.abs)) <= SYNC_MAX_MS, differences.join());
  await folds(page, begun);
  await skips(page, begun);
  equal(person.faults, []);
});

journey('keys move through entries and frames; a drag and chips limit the lists', async () => {
  const stack = await service.get();
  await using person = await openConsole(stack);
  const { session } = await visited(stack);
  await logIn(person, stack);
  const { page } = person;
  await page.goto(urlOf(stack, session));
  await until(() => page.evaluate<boolean>(`(${VIDEO}?.readyState ?? 0) >= 2`));
  await playerKeys(page);
  await page.keyboard.press('n');
  const chosen = () => new URL(page.url()).searchParams.get('e');
  await until(() => chosen() !== null);
  const first = Number(chosen());
  await page.keyboard.press('n');
  await until(() => Number(chosen()) === first + 1);
  await page.keyboard.press('p');
  await until(() => Number(chosen()) === first);
  await page.locator('.virtual').press('End');
  const all = Number(await page.locator('.tabs a[aria-current] .count').innerText());
  await until(() => Number(chosen()) === all - 1);
  await page.locator(`#row-${all - 1}[aria-selected=true]`).waitFor();
  await page.goto(`${urlOf(stack, session)}?tab=net&q=status:4xx`);
  await untilText(page, '.virtual', '/nowhere');
  is(await page.locator('.virtual-row').count(), 1);
  await page.keyboard.press('e');
  await untilText(page, '.inspector', '404');

  await page.goto(urlOf(stack, session));
  await page.getByTitle('Hide Page').click();
  await until(() => new URL(page.url()).searchParams.get('q') === '-domain:Page');
  await untilText(page, '.virtual', 'Runtime.');
  is((await page.locator('.virtual').innerText()).includes('Page.'), false);
  await page.getByTitle('Show Page').click();
  await untilText(page, '.virtual', 'Page.');
  await dragged(page);
  equal(person.faults, []);
});

journey('the requests of a session are a HAR file', async () => {
  const stack = await service.get();
  await using dir = tempDirectory();
  await using person = await openConsole(stack);
  const { session, site } = await visited(stack);
  await logIn(person, stack);
  const { page } = person;
  await page.goto(`${urlOf(stack, session)}?tab=net`);
  await untilText(page, '.virtual', '/nowhere');
  const har = JSON.parse(
    String(
      await downloaded(page, page.getByRole('button', { name: 'HAR', exact: true }), dir.path),
    ),
  );
  equal(harFaults(har), []);
  type Sent = { request: { method: string; url: string; headers: object[] }; time: number };
  type Entry = Sent & {
    response: { status: number; headers: object[] };
    timings: { wait: number };
  };
  const entries: Entry[] = har.log.entries;
  const documents = entries
    .filter(({ request }) => !request.url.endsWith('/favicon.ico'))
    .map(({ request, response }) => [request.method, request.url, response.status]);
  equal(documents, [
    ['GET', `${site}/moved`, 302],
    ['GET', `${site}/rooms`, 200],
    ['GET', `${site}/slow?ms=1200`, 200],
    ['GET', `${site}/nowhere`, 404],
  ]);
  const slow = must(
    entries.find(({ request }) => request.url.includes('/slow')),
    'the slow request',
  );
  ok(slow.timings.wait >= 1_000 && slow.time >= slow.timings.wait, `${slow.time}`);
  ok(slow.request.headers.length > 0 && slow.response.headers.length > 0);
  equal(person.faults, []);
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();

function urlOf({ url, projectId }: Stack, { id }: { id: string }): string {
  return `${url}/console/p/${projectId}/sessions/${id}`;
}

/** Waits until the first part of the recording is stored. */
async function recorded(stack: Stack, { id }: Session): Promise<void> {
  const path = `/v1/sessions/${id}/replays`;
  const count = async () => (await stack.call<Replays>(path)).pageCount;
  await until(async () => (await count()) > 0, 90_000);
}

/** In a running session, and back to its live picture. */
async function seeksBack({ page }: Person): Promise<void> {
  await page.getByRole('slider', { name: 'Time' }).focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  await untilText(page, '.controls', 'recorded up to');
  match(page.url(), /[?&]t=5\.000/);
  await untilText(page, '.clock', '5.000 s');
  await until(async () => (await page.evaluate<number>(READ)) > 0);
  const before = await page.evaluate<number>(READ);
  await page.keyboard.press('y');
  await untilText(page, '.notice', 'Copied');
  const link = await page.evaluate<string>('navigator.clipboard.readText()');
  match(link, /[?&]t=5\.0/);
  await page.getByRole('button', { name: 'Live', exact: true }).click();
  await page.locator('iframe').waitFor();
  is(page.url().includes('t='), false);
  await page.goto('about:blank');
  await page.goto(link);
  await until(async () => (await page.evaluate<number>(READ)) === before);
  await page.keyboard.press('l');
  await page.locator('iframe').waitFor();
}

/** Chooses the entry; returns its time in seconds since the session's start. */
async function choose(page: Page, text: string): Promise<number> {
  const row = page.locator('.virtual-row', { hasText: text });
  await row.click();
  const at = await row.locator('.at').innerText();
  await until(() => new URL(page.url()).searchParams.get('t') === at);
  return Number(at);
}

/** Waits until the video shows the time. */
async function untilAt(page: Page, at: number): Promise<void> {
  await until(async () => (await page.evaluate<number>(READ)) >= 0 && (await isNear(page, at)));
}

async function isNear(page: Page, at: number): Promise<boolean> {
  const time = await page.evaluate<number>(`${VIDEO}.currentTime`);
  return Math.abs(time - at) * 1_000 <= SYNC_MAX_MS;
}

/** How long after the time the video begins to show the count, in ms; negative: before it. */
async function differenceOf(page: Page, { count, at }: { count: number; at: number }) {
  await untilAt(page, at);
  for (let ms = -350; ms <= 900; ms += 25) {
    await page.evaluate(`${VIDEO}.currentTime = ${at + ms / 1_000}`);
    await until(async () => (await page.evaluate<number>(READ)) >= 0);
    if ((await page.evaluate<number>(READ)) === count) return ms;
  }
  return Number.POSITIVE_INFINITY;
}

/** A place on the timeline is the same moment, with and without folded stretches. */
async function folds(page: Page, begun: number): Promise<void> {
  const slider = page.getByRole('slider', { name: 'Time' });
  const lanes = must(await slider.boundingBox(), 'the lanes');
  match(await page.locator('.notch').first().innerText(), /^\d+ s$/);
  const places: number[] = [];
  for (const isFolded of [true, false]) {
    is((await page.locator('.notch').count()) > 0, isFolded);
    const at = (await choose(page, 'count 35 shown')) - begun;
    await untilAt(page, at);
    const head = must(await page.locator('.playhead').boundingBox(), 'the playhead');
    places.push(head.x);
    await slider.focus();
    await page.keyboard.press('Home');
    await untilAt(page, 0);
    await page.mouse.click(head.x, lanes.y + lanes.height / 2);
    await untilAt(page, at);
    await until(async () => Math.abs((await page.evaluate<number>(READ)) - 35) <= 1);
    await page.keyboard.press('z');
  }
  const [folded = 0, whole = 0] = places;
  ok(Math.abs(folded - whole) > 10, 'folding moves what comes after');
}

/** While it plays, the player leaves a stretch in which nothing is logged. */
async function skips(page: Page, begun: number): Promise<void> {
  const next = await choose(page, 'count 31 shown');
  await untilAt(page, next - begun);
  const last = await choose(page, 'count 9 shown');
  await untilAt(page, last - begun);
  await page.evaluate(
    `${VIDEO}.addEventListener('seeking', () => jumpedTo = ${VIDEO}.currentTime)`,
  );
  await page.getByRole('button', { name: 'Skip idle' }).click();
  await page.keyboard.press('l');
  await until(() => page.evaluate<boolean>(`'jumpedTo' in globalThis`));
  const jumped = await page.evaluate<number>('jumpedTo');
  ok(jumped < next - begun && jumped > next - begun - 1, `${jumped}, not before ${next - begun}`);
  await page.keyboard.press('k');
}

/** An ended session that has visited some pages, with its recording. */
async function visited(stack: Stack): Promise<{ session: Session; site: string }> {
  await using site = await startSite();
  const { session, browser, page } = await startLive(stack);
  await page.goto(`${site.url}/moved`);
  await page.goto(`${site.url}/slow?ms=1200`);
  await page.goto(`${site.url}/nowhere`);
  const longAgo = performance.now();
  await until(() => performance.now() - longAgo > 2_000); // a recording to move in
  await page.evaluate(`console.log('the end')`);
  await browser.close();
  await recorded(stack, session);
  return { session, site: site.url };
}

async function playerKeys(page: Page): Promise<void> {
  const time = () => page.evaluate<number>(`${VIDEO}.currentTime`);
  const sought = async (key: string, isThere: (at: number) => boolean) => {
    await page.keyboard.press(key);
    await until(async () => isThere(await time()));
  };
  await sought('.', (at) => Math.abs(at - 0.1) < 0.01);
  await sought('Shift+ArrowRight', (at) => Math.abs(at - 1.1) < 0.01);
  await sought(',', (at) => Math.abs(at - 1) < 0.01);
  await sought('Shift+ArrowLeft', (at) => at < 0.01);
  await page.keyboard.press('l');
  await until(() => page.evaluate<boolean>(`!${VIDEO}.paused`));
  await page.keyboard.press('l');
  await until(() => page.evaluate<boolean>(`${VIDEO}.playbackRate === 2`));
  await page.keyboard.press('k');
  await until(() => page.evaluate<boolean>(`${VIDEO}.paused && ${VIDEO}.playbackRate === 1`));
  await sought('j', (at) => at < 0.01);
  const picture = page.getByRole('button', { name: 'Snapshot' });
  await using dir = tempDirectory();
  ok((await downloaded(page, picture, dir.path)).subarray(0, 4).equals(PNG));
  await page.keyboard.press('f');
  await until(() => page.evaluate<boolean>('document.fullscreenElement !== null'));
  await page.keyboard.press('f');
  await until(() => page.evaluate<boolean>('document.fullscreenElement === null'));
}

/** A range of time is chosen by a drag, is in the address, and ends with Escape. */
async function dragged(page: Page): Promise<void> {
  const count = () => page.locator('.virtual-all').getAttribute('style');
  const all = await count();
  const lanes = must(await page.getByRole('slider', { name: 'Time' }).boundingBox(), 'the lanes');
  const y = lanes.y + lanes.height / 2;
  await page.mouse.move(lanes.x + lanes.width * 0.5, y);
  await page.mouse.down();
  await page.mouse.move(lanes.x + lanes.width * 0.4, y);
  await page.mouse.move(lanes.x + lanes.width * 0.2, y);
  await page.mouse.up();
  await page.locator('.range').waitFor();
  await until(async () => (await count()) !== all);
  const { searchParams } = new URL(page.url());
  const [from, to] = [Number(searchParams.get('from')), Number(searchParams.get('to'))];
  ok(from >= 0 && to > from, page.url());
  const times = await page.locator('.virtual-row .at').allInnerTexts();
  ok(times.length > 0 && times.every((at) => Number(at) >= from && Number(at) <= to), times.join());
  await page.reload();
  await page.locator('.range').waitFor();
  await page.keyboard.press('Escape');
  await until(async () => (await count()) === all);
  is(page.url().includes('from='), false);
}

async function downloaded(page: Page, button: Locator, dir: string): Promise<Buffer> {
  const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
  const path = join(dir, crypto.randomUUID());
  await download.saveAs(path);
  return readFileSync(path);
}
