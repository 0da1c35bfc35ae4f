/** What a real Chrome shows ends as a video in core, which others play. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../core/ids.ts';
import { must } from '../../proto/must.ts';
import { openEncoder } from '../../runner/chrome/encoder.ts';
import { openPages, type Page as WatchedPage } from '../../runner/chrome/pages.ts';
import { recording } from '../../runner/recording.ts';
import { openRecordings, type Recordings } from '../../runner/recordings.ts';
import { type Booted, boot } from '../core/boot.ts';
import { until } from '../support/poll.ts';
import { pixelAt, probeVideo } from '../support/video.ts';
import { type Lab, launchOne, log, openLab } from './chrome/lab.ts';

const test = suite('runner/recording');
const LIMIT_MS = 30_000;

type Recorded = { leaseId: string; sessionId: string };

async function lease(app: Booted): Promise<Recorded> {
  const { sessionId } = await app.invoke(await app.publish({ name: newId() }));
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  return { leaseId, sessionId };
}

const COLOURS = { red: [255, 0, 0], lime: [0, 255, 0], blue: [0, 0, 255] } as const;
type Colour = keyof typeof COLOURS;

/** Waits until a page's last picture has that colour. */
type Shows = (colour: Colour) => Promise<void>;
/** Sets the page's colour, and waits for it. */
type Paint = (page: Page, colour: Colour) => Promise<void>;

/** Records what `drive` does, ends the session, and encodes what is left. */
async function record(
  app: Booted,
  lab: Lab,
  { leaseId }: Recorded,
  drive: (browser: Browser, paint: Paint, shows: Shows) => Promise<void>,
): Promise<void> {
  const encoder = openEncoder({
    launch: (wanted) => launchOne({ runDir: lab.runDir, allow: [], ...wanted }),
    log,
  });
  await using recordings = openRecordings({ encoder, runDir: lab.runDir, log });
  const { clients, asRunner: call } = app;
  const last = new Map<string, Buffer>(); // by spool
  const watched: Recordings = {
    ...recordings,
    openSpool(name) {
      const spool = recordings.openSpool(name);
      const { add } = spool;
      return Object.assign(spool, {
        add(picture: Parameters<typeof add>[0]) {
          last.set(name, picture.jpeg);
          return add(picture);
        },
      });
    },
  };
  const shows: Shows = async (colour) => {
    const path = join(lab.runDir, 'picture.jpg');
    const isShown = async (picture: Buffer) => {
      writeFileSync(path, picture);
      const seen = await pixelAt(path, 0, { x: 100, y: 600 });
      return seen.every(
        (value, index) => Math.abs(value - must(COLOURS[colour][index], 'a part of it')) < 60,
      );
    };
    await until(async () => {
      for (const picture of last.values()) if (await isShown(picture)) return true;
      return false;
    }, LIMIT_MS);
  };
  const paint: Paint = async (page, colour) => {
    await page.evaluate(`document.documentElement.style.background = '${colour}'`);
    await shows(colour);
  };
  const open = recording({ clients, call, leaseId, recordings: watched, now: Date.now });
  const part = await open(lab.chrome);
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  await drive(browser, paint, shows);
  await browser.close();
  await part.end();
  const end = { leaseId, outcome: undefined, sessionStartMs: app.clock.now() };
  await clients.runners.completeInvocation(end, call);
  await recordings.idle();
}

async function downloads(app: Booted, id: string) {
  const { sessions } = app.clients;
  await sessions.requestRecordingDownloads({ id }, app.asProject);
  return (await sessions.listRecordingDownloads({ id }, app.asProject)).downloads;
}

async function save(app: Booted, url: string, path: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const { chunk } of app.clients.blobs.readBlob({ blobId: '', url }, app.asGateway)) {
    chunks.push(chunk);
  }
  writeFileSync(path, Buffer.concat(chunks));
  return path;
}

const pageOf = (browser: Browser): Page =>
  must(browser.contexts()[0]?.pages()[0], 'the default page');

test('a session becomes a video of what its page showed, and its popup another', async () => {
  await using app = await boot();
  await using lab = await openLab({ allow: ['127.0.0.1/32'] });
  const work = await lease(app);
  await record(app, lab, work, async (browser, paint) => {
    const page = pageOf(browser);
    await page.goto(lab.siteUrl);
    await paint(page, 'red');
    await paint(page, 'blue');
    const popping = page.waitForEvent('popup');
    await page.evaluate('void open("/popup")');
    const popup = await popping;
    await popup.waitForURL('**/popup');
    await paint(popup, 'lime');
  });
  const { sessions } = app.clients;
  const replays = await sessions.listReplays({ id: work.sessionId }, app.asProject);
  assert.equal(
    replays.pages.map(({ pageId, url }) => [pageId, url]),
    [
      ['0', `${lab.siteUrl}/`],
      ['1', `${lab.siteUrl}/popup`],
    ],
  );
  const made = await downloads(app, work.sessionId);
  assert.equal(
    made.map(({ status }) => status),
    ['COMPLETED', 'COMPLETED'],
  );
  const path = await save(app, made[0]?.downloadUrl ?? '', join(lab.runDir, '0.mp4'));
  const video = await probeVideo(path);
  assert.equal([video.codec, video.width, video.height], ['h264', 1280, 800]);
  const [page] = replays.pages;
  const lastsMs = must(page, 'page').endTimeMs - must(page, 'page').startTimeMs;
  assert.ok(Math.abs(video.duration * 1_000 - lastsMs) < 50, `${video.duration} ${lastsMs}`);
  const [red, , blue] = await pixelAt(path, video.duration, { x: 640, y: 400 });
  assert.ok(blue > 200 && red < 60, `${red} ${blue}`);
  const popup = await save(app, made[1]?.downloadUrl ?? '', join(lab.runDir, '1.mp4'));
  const shown = await probeVideo(popup);
  const [, green] = await pixelAt(popup, shown.duration, { x: 640, y: 400 });
  assert.ok(green > 200, String(green));
});

test('a page whose size changes stays playable, at the size it had first', async () => {
  await using app = await boot();
  await using lab = await openLab({ allow: ['127.0.0.1/32'] });
  const work = await lease(app);
  await record(app, lab, work, async (browser, paint) => {
    const page = pageOf(browser);
    await page.goto(lab.siteUrl);
    await paint(page, 'red');
    await page.setViewportSize({ width: 390, height: 844 });
    await paint(page, 'blue');
  });
  const [made] = await downloads(app, work.sessionId);
  const path = await save(app, made?.downloadUrl ?? '', join(lab.runDir, '0.mp4'));
  const video = await probeVideo(path);
  assert.equal([video.width, video.height], [1280, 800]);
  const [, , blue] = await pixelAt(path, video.duration, { x: 640, y: 400 });
  assert.ok(blue > 200, String(blue));
});

test('a page that draws without end is recorded sparingly, and live again at rest', async () => {
  await using app = await boot();
  await using lab = await openLab({ allow: ['127.0.0.1/32'] });
  const work = await lease(app);
  await record(app, lab, work, async (browser, paint) => {
    const page = pageOf(browser);
    await page.goto(lab.siteUrl);
    await page.evaluate(`{
      const until = performance.now() + 5_000;
      const draw = () => {
        document.body.textContent = performance.now();
        if (performance.now() < until) requestAnimationFrame(draw);
        else document.title = 'over';
      };
      draw();
    }`);
    await page.waitForFunction('document.title === "over"');
    await page.waitForTimeout(1_000);
    await paint(page, 'blue');
  });
  const [made] = await downloads(app, work.sessionId);
  const path = await save(app, made?.downloadUrl ?? '', join(lab.runDir, '0.mp4'));
  const video = await probeVideo(path);
  assert.ok(video.frames > 10 && video.frames < video.duration * 9, JSON.stringify(video));
  const [red, , blue] = await pixelAt(path, video.duration, { x: 640, y: 600 });
  assert.ok(blue > 200 && red < 60, `${red} ${blue}`);
});

test('a blank session has no recording', async () => {
  await using app = await boot();
  await using lab = await openLab({ allow: [] });
  const work = await lease(app);
  await record(app, lab, work, async (browser) => {
    await pageOf(browser).waitForTimeout(600);
  });
  const { sessions } = app.clients;
  const { pageCount } = await sessions.listReplays({ id: work.sessionId }, app.asProject);
  assert.is(pageCount, 0);
});

test('a page that crashes goes on being recorded when it is navigated', async () => {
  await using app = await boot();
  await using lab = await openLab({ allow: ['127.0.0.1/32'] });
  const work = await lease(app);
  await record(app, lab, work, async (browser, paint, shows) => {
    const page = pageOf(browser);
    await page.goto(lab.siteUrl);
    await paint(page, 'red');
    const crashed = page.waitForEvent('crash');
    const cdp = await page.context().newCDPSession(page);
    cdp.send('Page.crash').catch(() => undefined); // never answered
    await crashed;
    const patient = { timeoutMs: LIMIT_MS };
    const [{ session }] = (await openPages(lab.chrome)).open() as [WatchedPage];
    await session.call('Page.navigate', { url: `${lab.siteUrl}/again` }, patient);
    // a page may be empty yet when its navigation is answered
    const expression = `new Promise((done) => {
      const paint = () => done(document.documentElement.style.background = 'blue');
      if (document.readyState === 'complete') paint();
      else addEventListener('load', paint);
    })`;
    await session.call('Runtime.evaluate', { expression, awaitPromise: true }, patient);
    await shows('blue'); // Playwright does not speak to a page that has crashed
  });
  const [made] = await downloads(app, work.sessionId);
  const path = await save(app, made?.downloadUrl ?? '', join(lab.runDir, '0.mp4'));
  const { duration } = await probeVideo(path);
  const [, , blue] = await pixelAt(path, duration, { x: 640, y: 400 });
  assert.ok(blue > 200, String(blue));
});

test.run();
