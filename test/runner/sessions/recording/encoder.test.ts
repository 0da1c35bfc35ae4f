/** JPEG frames become segments that players accept, in a Chrome that starts on demand. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openPages } from '../../../../runner/browser/cdp/pages.ts';
import { attach } from '../../../../runner/browser/cdp/target-session.ts';
import type { Chrome } from '../../../../runner/browser/launch.ts';
import {
  type Encoder,
  openEncoder,
  type TimedFrame,
} from '../../../../runner/sessions/recording/encoder.ts';
import { pixelAt, probeVideo } from '../../../support/runner/video.ts';
import { tempDirectory } from '../../../support/temp.ts';
import { launchOne, log, until } from '../../browser/lab.ts';

const encoder = suite('runner/sessions/recording/encoder');

type Lab = AsyncDisposable & { encoder: Encoder; launched: Chrome[]; dir: string };

async function openEncoderLab(idleMs = 60_000): Promise<Lab> {
  const dir = tempDirectory();
  const launched: Chrome[] = [];
  const opened = openEncoder({
    async launch(wanted) {
      const chrome = await launchOne({ runDir: dir.path, allow: [], ...wanted });
      launched.push(chrome);
      return chrome;
    },
    log,
    idleMs,
  });
  return {
    encoder: opened,
    launched,
    dir: dir.path,
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]();
      await dir[Symbol.asyncDispose]();
    },
  };
}

/** Ours: for a browser without a GPU, on a busy machine. */
const PAINT_MAX_MS = 60_000;

/** Pictures of one colour each, as a Chrome of its own encodes them; none is captured of a page. */
async function renderFrames(
  dir: string,
  wanted: { width: number; height: number; colours: string[] },
): Promise<Buffer[]> {
  const chrome = await launchOne({ runDir: dir, allow: [] });
  try {
    const { targetInfos } = await chrome.pipe.call('Target.getTargets');
    const [target] = targetInfos as { targetId: string }[];
    await using page = await attach(chrome.pipe, target?.targetId ?? '');
    const expression = `${PAINT_JPEGS}(${JSON.stringify(wanted)})`;
    const asked = { expression, returnByValue: true };
    const { result } = await page.call('Runtime.evaluate', asked, { timeoutMs: PAINT_MAX_MS });
    const { value } = result as { value: string[] };
    return value.map((url) => Buffer.from(url.slice(url.indexOf(',') + 1), 'base64'));
  } finally {
    await chrome.close();
  }
}

/** In the page: a data URL for each colour. */
const PAINT_JPEGS = `(({ width, height, colours }) => {
  const canvas = Object.assign(document.createElement('canvas'), { width, height });
  const brush = canvas.getContext('2d');
  return colours.map((colour) => {
    brush.fillStyle = colour;
    brush.fillRect(0, 0, width, height);
    return canvas.toDataURL('image/jpeg');
  });
})`;

/** A second each, one after another. */
function seconds(jpegs: readonly Buffer[], from = 0): TimedFrame[] {
  return jpegs.map((jpeg, index) => ({ at: from + index * 1000, lasts: 1000, jpeg }));
}

encoder('concatenated segments are one video that ffmpeg plays', async () => {
  await using lab = await openEncoderLab();
  const size = { width: 640, height: 400 };
  const jpegs = await renderFrames(lab.dir, { ...size, colours: ['red', 'lime', 'blue'] });
  const first = await lab.encoder.encode({ ...size, frames: seconds(jpegs) });
  const second = Math.trunc(Date.now() / 1000);
  // the unit of a video's times
  await until(() => Math.trunc(Date.now() / 1000) > second, 'another second');
  const later = await lab.encoder.encode({ ...size, frames: seconds(jpegs, 3_000) });
  assert.ok(first.start.equals(later.start));
  const path = join(lab.dir, 'video.mp4');
  writeFileSync(path, Buffer.concat([first.start, first.segment, later.segment]));
  const video = await probeVideo(path);
  assert.equal(video, { codec: 'h264', ...size, duration: 6, frames: 6 });
  const [red, green, blue] = await pixelAt(path, 4.2, { x: 320, y: 200 });
  assert.ok(red < 60 && green > 200 && blue < 60, `${red} ${green} ${blue}`);
  assert.is(lab.launched.length, 1);
});

encoder('a frame of another size is fitted in on black', async () => {
  await using lab = await openEncoderLab();
  const size = { width: 640, height: 400 };
  const [wide] = await renderFrames(lab.dir, { ...size, colours: ['red'] });
  const [tall] = await renderFrames(lab.dir, { width: 200, height: 400, colours: ['blue'] });
  if (wide === undefined || tall === undefined) throw new Error('no frames');
  const made = await lab.encoder.encode({ ...size, frames: seconds([wide, tall]) });
  const path = join(lab.dir, 'video.mp4');
  writeFileSync(path, Buffer.concat([made.start, made.segment]));
  assert.equal((await probeVideo(path)).width, 640);
  const [red, , blue] = await pixelAt(path, 1.5, { x: 320, y: 200 });
  assert.ok(red < 60 && blue > 200, `${red} ${blue}`);
  const beside = await pixelAt(path, 1.5, { x: 20, y: 200 });
  assert.ok(
    beside.every((one) => one < 40),
    String(beside),
  );
});

encoder('a frame that lasts an hour is repeated at little size', async () => {
  await using lab = await openEncoderLab();
  const size = { width: 320, height: 200 };
  const [jpeg] = await renderFrames(lab.dir, { ...size, colours: ['red'] });
  if (jpeg === undefined) throw new Error('no picture');
  const frames = [{ at: 0, lasts: 3_600_000, jpeg }];
  const made = await lab.encoder.encode({ ...size, frames });
  assert.ok(made.segment.length < 1 << 20, `${made.segment.length}`);
  const path = join(lab.dir, 'video.mp4');
  writeFileSync(path, Buffer.concat([made.start, made.segment]));
  const video = await probeVideo(path);
  assert.is(Math.round(video.duration), 3600);
  assert.is(video.frames, 120);
});

encoder(
  'its Chrome ends when there is nothing to do, and the next segment has another',
  async () => {
    await using lab = await openEncoderLab(1);
    const size = { width: 320, height: 200 };
    const jpegs = await renderFrames(lab.dir, { ...size, colours: ['red'] });
    await lab.encoder.encode({ ...size, frames: seconds(jpegs) });
    await lab.launched[0]?.exited;
    await lab.encoder.encode({ ...size, frames: seconds(jpegs) });
    await until(() => lab.launched.length === 2, 'a second Chrome');
  },
);

encoder('an encoder whose Chrome is slow to start encodes', async () => {
  await using dir = tempDirectory();
  await using opened = openEncoder({
    async launch(wanted) {
      const chrome = await launchOne({ runDir: dir.path, allow: [], ...wanted });
      await openPages(chrome);
      chrome.pipe.pause(dir);
      setTimeout(() => chrome.pipe.resume(dir), 2_500);
      return chrome;
    },
    log,
  });
  const size = { width: 320, height: 200 };
  const jpegs = await renderFrames(dir.path, { ...size, colours: ['red'] });
  assert.ok((await opened.encode({ ...size, frames: seconds(jpegs) })).segment.length > 0);
});

encoder('the end of the encoder waits for a Chrome that it stopped before', async () => {
  await using dir = tempDirectory();
  const stopping = Promise.withResolvers<void>();
  const left = new Set<Chrome>();
  await using opened = openEncoder({
    async launch(wanted) {
      const chrome = await launchOne({ runDir: dir.path, allow: [], ...wanted });
      left.add(chrome);
      void chrome.exited.then(() => left.delete(chrome));
      const kill = (): void => {
        stopping.resolve();
        chrome.kill();
      };
      return { ...chrome, kill };
    },
    log,
    idleMs: 1,
  });
  const size = { width: 320, height: 200 };
  const jpegs = await renderFrames(dir.path, { ...size, colours: ['red'] });
  await opened.encode({ ...size, frames: seconds(jpegs) });
  await stopping.promise;
  await opened[Symbol.asyncDispose]();
  assert.is(left.size, 0);
});

encoder('an invalid image fails its segment only', async () => {
  await using lab = await openEncoderLab();
  const size = { width: 320, height: 200 };
  const jpegs = await renderFrames(lab.dir, { ...size, colours: ['red'] });
  const broken = lab.encoder.encode({ ...size, frames: seconds([Buffer.from('no picture')]) });
  const after = lab.encoder.encode({ ...size, frames: seconds(jpegs) });
  assert.match(String(await broken.catch(String)), /the encoder failed/);
  assert.ok((await after).segment.length > 0);
});

encoder('a killed Chrome fails its segment, and the next one gets another Chrome', async () => {
  await using lab = await openEncoderLab();
  const size = { width: 320, height: 200 };
  const jpegs = await renderFrames(lab.dir, { ...size, colours: ['red'] });
  async function* killing() {
    yield* seconds(jpegs);
    lab.launched[0]?.kill();
    await lab.launched[0]?.exited;
    yield* seconds(jpegs, 1000);
  }
  const failed = await lab.encoder.encode({ ...size, frames: killing() }).catch(String);
  assert.match(String(failed), /gone/);
  assert.ok((await lab.encoder.encode({ ...size, frames: seconds(jpegs) })).segment.length > 0);
});

encoder.run();
