/** The page of a real Chrome becomes a video in core, which players accept. */
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { openPages, type Page as WatchedPage } from '../../../../runner/browser/cdp/pages.ts';
import { boot } from '../../../core/boot.ts';
import { pixelAt, probeVideo } from '../../../support/runner/video.ts';
import { openLab, PATIENT } from '../../browser/lab.ts';
import { downloads, lease, type Paint, pageOf, record, save } from './recorded.ts';

const test = suite('runner/sessions/recording/recording');

test("a session's page becomes a video, and its popup another", async () => {
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

test('a session longer than a segment becomes one video', async () => {
  await using app = await boot();
  await using lab = await openLab({ allow: ['127.0.0.1/32'] });
  const work = await lease(app);
  let skippedMs = 0;
  const drive = async (browser: Browser, paint: Paint): Promise<void> => {
    const page = pageOf(browser);
    await page.goto(lab.siteUrl);
    await paint(page, 'red');
    skippedMs = 31_000;
    await paint(page, 'lime'); // with it another segment begins
    await page.waitForTimeout(2_000); // the first is made meanwhile, in another second
    await paint(page, 'blue');
  };
  await record(app, lab, work, drive, () => Date.now() + skippedMs);
  const [made] = await downloads(app, work.sessionId);
  const path = await save(app, made?.downloadUrl ?? '', join(lab.runDir, '0.mp4'));
  const [red] = await pixelAt(path, 20, { x: 640, y: 400 });
  const [, , blue] = await pixelAt(path, 60, { x: 640, y: 400 }); // the last for ever
  assert.ok(red > 200 && blue > 200, `${red} ${blue}`);
});

test('the video of a page whose size changes keeps the first size', async () => {
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

test('a page that draws without end is recorded in single frames until it is static', async () => {
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

test('the recording of a crashed page continues after a navigation', async () => {
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
    const [{ session }] = (await openPages(lab.chrome)).open() as [WatchedPage];
    await session.call('Page.navigate', { url: `${lab.siteUrl}/again` }, PATIENT);
    // a page may be empty yet when its navigation is answered
    const expression = `new Promise((done) => {
      const paint = () => done(document.documentElement.style.background = 'blue');
      if (document.readyState === 'complete') paint();
      else addEventListener('load', paint);
    })`;
    await session.call('Runtime.evaluate', { expression, awaitPromise: true }, PATIENT);
    await shows('blue'); // Playwright does not speak to a page that has crashed
  });
  const [made] = await downloads(app, work.sessionId);
  const path = await save(app, made?.downloadUrl ?? '', join(lab.runDir, '0.mp4'));
  const { duration } = await probeVideo(path);
  const [, , blue] = await pixelAt(path, duration, { x: 640, y: 400 });
  assert.ok(blue > 200, String(blue));
});

test.run();
