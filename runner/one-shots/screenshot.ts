/** A picture of the page: its viewport, all of it, or one element. */
import {
  type OneShotParams,
  type ScreenshotParams,
  SIDE_MAX,
} from '../../proto/one-shots/messages.ts';
import { Failure } from './failure.ts';
import { elementOf, type Page } from './page.ts';

/** Ours: a first frame takes some 50 ms, and seconds on a busy machine. */
const ATTEMPTS_MAX = 100;
const AGAIN_MS = 30;

type Clip = { x: number; y: number; width: number; height: number; scale: number };

/** In base64. */
export async function takeScreenshot(
  { send }: Page,
  { selector, viewport }: OneShotParams,
  { fullPage, format, quality }: ScreenshotParams,
): Promise<string> {
  const clip =
    selector === undefined ? await pageClip(send, fullPage) : await clipOf(send, selector);
  const scale = viewport.deviceScaleFactor;
  if (clip && Math.max(clip.width, clip.height) * scale > SIDE_MAX) {
    const size = `${Math.ceil(clip.width * scale)} x ${Math.ceil(clip.height * scale)}`;
    const advice = 'leave fullPage out, or name a smaller element in selector';
    const limit = `the limit of a side is ${SIDE_MAX}`;
    throw new Failure('large', `The picture has ${size} pixels; ${limit}: ${advice}.`);
  }
  return await capture(send, {
    format,
    ...(quality === undefined ? {} : { quality }),
    ...(clip && { clip, captureBeyondViewport: true }),
  });
}

/** A page that has not drawn its first frame cannot be captured yet: Chrome refuses at once. */
async function capture(send: Page['send'], wanted: object): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return (await send('Page.captureScreenshot', wanted)).data;
    } catch (error) {
      const isEarly = /unable to capture/i.test((error as Error).message);
      if (!isEarly || error instanceof Failure || attempt === ATTEMPTS_MAX) throw error;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

async function pageClip(send: Page['send'], fullPage: boolean): Promise<Clip | undefined> {
  if (!fullPage) return undefined;
  const { cssContentSize } = await send('Page.getLayoutMetrics');
  return { ...cssContentSize, scale: 1 };
}

async function clipOf(send: Page['send'], selector: string): Promise<Clip> {
  const nodeId = await elementOf(send, selector, 'selector');
  if (nodeId === undefined) {
    throw new Failure('field', 'matches no element of the page.', 'selector');
  }
  try {
    const { cssVisualViewport } = await send('Page.getLayoutMetrics');
    const { model } = await send('DOM.getBoxModel', { nodeId });
    const [x, y] = model.border;
    const { width, height } = model;
    if (width === 0 || height === 0) throw new Error('empty');
    const { pageX, pageY } = cssVisualViewport;
    return { x: x + pageX, y: y + pageY, width, height, scale: 1 };
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure('field', 'matches an element that is not shown.', 'selector');
  }
}
