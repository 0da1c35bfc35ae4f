/**
 * Recordings over the public interface: videos of a session, played by ffmpeg and by Chrome's own
 * <video>, and refusals.
 */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import { equal, is, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { listen } from '../../runner/browser/lab.ts';
import { until } from '../../support/poll.ts';
import { pixelAt, probeVideo } from '../../support/runner/video.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/sessions/recording');
const LIMIT_MS = 60_000;
const env = { TABERN_SESSION_GRACE_MS: '200' };
const service = shareStack({ env });

type Session = { id: string; status: string; connectUrl: string };
type Download = { pageId: string; status: string; downloadUrl?: string };

const create = (stack: Stack, json: object = {}) => stack.call<Session>('/v1/sessions', { json });

async function ended(stack: Stack, { id }: Session): Promise<void> {
  await until(async () => {
    const { status } = await stack.call<Session>(`/v1/sessions/${id}`);
    return status === 'COMPLETED';
  }, LIMIT_MS);
}

/** Requests the download and waits for it. */
async function downloadsOf(stack: Stack, { id }: Session): Promise<Download[]> {
  const path = `/v1/sessions/${id}/recording/downloads`;
  type Answer = { downloads: Download[] };
  await stack.call<Answer>(path, { method: 'POST' });
  return await until(async () => {
    const { downloads } = await stack.call<Answer>(path);
    return downloads.every(({ status }) => status === 'COMPLETED') && downloads;
  }, LIMIT_MS);
}

/** A page of one colour, then another. */
async function startColours() {
  const server = createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end(`<body style="background: ${request.url?.slice(1) || 'white'}">`);
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.dispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

journey('a session is recorded, its video plays in ffmpeg and in <video>, and seeks', async () => {
  using site = await startColours();
  await using dir = tempDirectory();
  const stack = await service.get();
  const session = await create(stack);
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'the default page');
  await page.goto(`${site.url}/red`);
  await page.waitForTimeout(3_000);
  await page.goto(`${site.url}/blue`);
  await page.waitForTimeout(3_000);
  await browser.close();
  await ended(stack, session);
  const [download] = await downloadsOf(stack, session);
  const url = must(download?.downloadUrl, 'a link');
  const path = join(dir.path, 'video.mp4');
  writeFileSync(path, Buffer.from(await (await fetch(url)).arrayBuffer()));
  const video = await probeVideo(path);
  is(video.codec, 'h264');
  ok(video.duration > 5 && video.duration < 60, String(video.duration));
  const last = await pixelAt(path, video.duration, { x: 400, y: 300 });
  ok(last[2] > 200 && last[0] < 60, String(last));
  const first = await pixelAt(path, 2, { x: 400, y: 300 });
  ok(first[0] > 200 && first[2] < 60, String(first));

  const replay = `/v1/sessions/${session.id}/replays`;
  const { pages } = await stack.call<{ pages: { pageId: string; url: string }[] }>(replay);
  equal(
    pages.map(({ pageId, url: at }) => [pageId, at]),
    [['0', `${site.url}/blue`]],
  );
  const playlist = join(dir.path, 'list.m3u8');
  writeFileSync(playlist, await (await stack.fetch(`${replay}/0`)).text());
  const played = await probeVideo(playlist, ['-protocol_whitelist', 'file,http,tcp']);
  is(played.frames, video.frames);

  const shown = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox'],
  });
  try {
    const player = await shown.newPage();
    await player.goto(site.url);
    const seen = await player.evaluate(PLAY, url);
    ok(Math.abs(seen.duration - video.duration) < 0.2, JSON.stringify(seen));
    is(seen.width, video.width);
    ok(seen.first[0] > 180 && seen.first[2] < 80, JSON.stringify(seen));
    ok(seen.last[2] > 180 && seen.last[0] < 80, JSON.stringify(seen));
  } finally {
    await shown.close();
  }
});

type Colour = [number, number, number, number];
type Seen = { duration: number; width: number; first: Colour; last: Colour };

/**
 * Loads the video in a page and reads frames near its end and then near its start. On a busy
 * machine the frame before the seek is drawn for a while: it waits for the other colour.
 */
const PLAY = new Function(
  'url',
  `return (async () => {
    const video = document.createElement('video');
    video.crossOrigin = 'anonymous';
    video.muted = true;
    video.src = url;
    const event = (name) => new Promise((done, fail) => {
      video.addEventListener(name, done, { once: true });
      video.addEventListener('error', () => fail(new Error(video.error.message)), { once: true });
    });
    await event('loadeddata');
    const at = async (time, redBefore) => {
      const sought = event('seeked');
      video.currentTime = time;
      await sought;
      const canvas = new OffscreenCanvas(video.videoWidth, video.videoHeight);
      const context = canvas.getContext('2d');
      const until = performance.now() + ${LIMIT_MS};
      for (;;) {
        context.drawImage(video, 0, 0);
        const seen = [...context.getImageData(400, 300, 1, 1).data];
        const isDrawn = seen[3] === 255 && Math.abs(seen[0] - redBefore) > 100;
        if (isDrawn || performance.now() > until) return seen;
        await new Promise((done) => setTimeout(done, 20)); // seeked, but not yet decoded
      }
    };
    const { duration, videoWidth: width } = video;
    const last = await at(duration - 0.1, 255);
    const first = await at(2, last[0]);
    return { duration, width, first, last };
  })()`,
) as (url: string) => Promise<Seen>;

journey('an unrecorded, a running and an unknown session have no recording downloads', async () => {
  const stack = await service.get();
  const status = async (id: string, method = 'GET') =>
    (await stack.fetch(`/v1/sessions/${id}/recording/downloads`, { method })).status;
  const off = await create(stack, { browserSettings: { recordSession: false }, keepAlive: true });
  is(await status(off.id), 422);
  is(await status(off.id, 'POST'), 422);
  const running = await create(stack, { keepAlive: true });
  is(await status(running.id), 409);
  is(await status(crypto.randomUUID()), 404);
  for (const { id } of [off, running])
    await stack.fetch(`/v1/sessions/${id}`, { method: 'DELETE' });
  for (const session of [off, running]) await ended(stack, session);
  is(await status(off.id), 422);
  is(await status(running.id), 404); // no frame was shown
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();
