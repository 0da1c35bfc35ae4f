/** The small picture of a real Chrome's active page: shared, seldom, and unseen by others. */
import { type Browser, chromium, type Page } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openMetrics } from '../../../../proto/common/metrics.ts';
import { must } from '../../../../proto/common/must.ts';
import { openThumbnail } from '../../../../runner/sessions/live-view/thumbnail.ts';
import { jpegSize } from '../../../../runner/sessions/recording/page-recorder.ts';
import { until } from '../../../support/poll.ts';
import { type Lab, openLab } from '../../browser/lab.ts';

const test = suite('runner/sessions/live-view/thumbnail');

const EVERY_MS = 5_000;
const RED = '255,0,0';
const LIME = '0,255,0';

function firstPage(browser: Browser): Page {
  return must(browser.contexts()[0]?.pages()[0], 'the default page');
}

type Counted = { name: string; values: { value: number; labels: Record<string, string> }[] };

/** A page that counts what it can notice of a capture. */
const WATCHING = `<body style="background: rgb(${RED})"><script>
  noticed = [];
  for (const name of ['resize', 'focus', 'blur', 'scroll', 'pagehide', 'pageshow'])
    addEventListener(name, () => noticed.push(name), true);
  document.addEventListener('visibilitychange', () => noticed.push('visibility'));
  matchMedia('(resolution: 1dppx)').addEventListener('change', () => noticed.push('resolution'));
  state = () => JSON.stringify([devicePixelRatio, innerWidth, innerHeight, screen.width,
    document.visibilityState, document.hasFocus(), noticed]);
</script>`;

/** Thumbnails of a lab whose clock the test moves, and the number of captures. */
async function openPictures({ chrome }: Lab) {
  const metrics = await openMetrics('test');
  let at = 0;
  const thumbnail = openThumbnail(chrome, { metrics, now: () => at });
  return {
    thumbnail,
    later: (ms: number) => {
      at += ms;
    },
    async captures(outcome = 'ok'): Promise<number> {
      const families = (await metrics.samples()) as Counted[];
      const { values = [] } = families.find(({ name }) => name === 'tabern_thumbnails_total') ?? {};
      return values.find(({ labels }) => labels['outcome'] === outcome)?.value ?? 0;
    },
  };
}

/** The colour in the middle, each part rounded to a multiple of 51. */
async function colourOf(page: Page, jpeg: Buffer | undefined): Promise<string> {
  return page.evaluate<string>(`(async () => {
    const bytes = Uint8Array.from(atob('${jpeg?.toString('base64')}'), (one) => one.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes]));
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
    canvas.drawImage(bitmap, 0, 0);
    const { data } = canvas.getImageData(bitmap.width >> 1, bitmap.height >> 1, 1, 1);
    return [...data].slice(0, 3).map((one) => Math.round(one / 51) * 51).join();
  })()`);
}

/** The first frame may be older than the newest change. */
function untilShows(page: Page, colour: string, next: () => Promise<Buffer | undefined>) {
  return until(async () => (await colourOf(page, await next())) === colour);
}

test('many requests share one capture in five seconds, and without one there is none', async () => {
  await using lab = await openLab({ allow: ['127.0.0.0/8'] });
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = firstPage(browser);
  await page.setContent(WATCHING);
  const { thumbnail, later, captures } = await openPictures(lab);
  later(10 * EVERY_MS);
  assert.is(await captures(), 0);
  const pictures = await Promise.all(Array.from({ length: 20 }, () => thumbnail()));
  assert.is(await captures(), 1);
  assert.is(new Set(pictures).size, 1);
  const [jpeg] = pictures;
  assert.is(await colourOf(page, jpeg), RED);
  const { width, height } = must(jpegSize(must(jpeg, 'a picture')), 'a JPEG');
  assert.ok(width <= 320 && height <= 200 && Math.max(width / 320, height / 200) > 0.95);

  await page.evaluate(`document.body.style.background = 'rgb(${LIME})'`);
  later(EVERY_MS - 1);
  assert.is(await thumbnail(), jpeg);
  assert.is(await captures(), 1);
  later(1);
  await thumbnail();
  assert.is(await captures(), 2);
  await untilShows(page, LIME, () => {
    later(EVERY_MS);
    return thumbnail();
  });
  await browser.close();
});

test('a capture changes nothing that the page or its client sees', async () => {
  await using lab = await openLab({ allow: ['127.0.0.0/8'] });
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = firstPage(browser);
  const mobile = { width: 390, height: 844 };
  await page.setViewportSize(mobile);
  await page.setContent(WATCHING);
  const client = await page.context().newCDPSession(page);
  const heard: string[] = [];
  for (const name of [
    'Target.attachedToTarget',
    'Target.targetCreated',
    'Target.targetInfoChanged',
  ])
    client.on(name as never, () => heard.push(name));
  const widths: number[] = [];
  client.on('Page.screencastFrame', ({ data, sessionId }) => {
    widths.push(Buffer.from(data, 'base64').readUInt32BE(16)); // of a PNG
    client.send('Page.screencastFrameAck', { sessionId }).catch(() => undefined);
  });
  await client.send('Page.startScreencast', { format: 'png' });
  await until(() => widths.length > 0);
  const before = await page.evaluate('state()');
  const { thumbnail, later, captures } = await openPictures(lab);
  for (let n = 0; n < 3; n += 1) {
    const { width = 0, height = 0 } = jpegSize(must(await thumbnail(), 'a picture')) ?? {};
    assert.ok(width > 0 && width <= 100 && height <= 200, `${width} by ${height}`);
    later(EVERY_MS);
  }
  assert.is(await captures(), 3);
  assert.is(await page.evaluate('state()'), before);
  assert.equal(heard, []);
  // its own screencast goes on, in its own size
  const frames = widths.length;
  await page.evaluate(`document.body.style.background = 'rgb(${LIME})'`);
  await until(() => widths.length > frames);
  assert.equal([...new Set(widths)], [mobile.width]);
  await browser.close();
});

test('a page that hangs keeps its last picture, and the next page is captured again', async () => {
  await using lab = await openLab({ allow: ['127.0.0.0/8'] });
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  const page = firstPage(browser);
  await page.setContent(WATCHING);
  const { thumbnail, later } = await openPictures(lab);
  const first = await thumbnail();
  const other = await browser.contexts()[0]?.newPage();
  await must(other, 'a page').setContent(`<body style="background: rgb(${LIME})">`);
  assert.is(await thumbnail(), first);
  await untilShows(page, LIME, () => {
    later(EVERY_MS);
    return thumbnail();
  });
  must(other, 'a page')
    .evaluate('for (;;);')
    .catch(() => undefined); // it ends with its browser
  later(EVERY_MS);
  assert.ok(await thumbnail());
  await browser.close();
  await lab.chrome.close();
  later(EVERY_MS);
  assert.ok(await thumbnail()); // and no error: its Chrome is gone
});

test.run();
