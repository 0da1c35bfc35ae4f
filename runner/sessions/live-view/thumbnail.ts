/**
 * A small picture of a session's active page, for lists of sessions. It is captured on request
 * only, at most once in five seconds, and shared by all who request it. The frame comes from a
 * screencast on a session of the runner's own, which ends with its first frame: it scales in
 * Chrome, enables no domain, and neither the page nor a client can detect it (runner/browser/
 * README.md). A page that does not draw keeps its last picture.
 */
import { type Family, type Metrics, NO_METRICS } from '../../../proto/common/metrics.ts';
import { openPages } from '../../browser/cdp/pages.ts';
import { attach } from '../../browser/cdp/target-session.ts';
import type { Chrome } from '../../browser/launch.ts';
import { jpegSize } from '../recording/page-recorder.ts';

/** Between two captures of one session. Ours: a list is looked at, not watched. */
const EVERY_MS = 5_000;
/** In pixels: twice the size that the list shows, for dense screens. */
const FRAME_OPTIONS = { format: 'jpeg', quality: 60, maxWidth: 320, maxHeight: 200 } as const;
/** Ours: a page that hangs sends none. */
const FRAME_TIMEOUT_MS = 2_000;
/** Ours: noise of 320 by 200 pixels has 50 KB at this quality. */
const PICTURE_MAX_BYTES = 128 << 10;

const CAPTURES: Family = {
  name: 'tabern_thumbnails_total',
  help: 'Pictures of sessions that were captured for lists of the console, by outcome.',
  labels: ['outcome'],
};

/** The newest JPEG, five seconds old at most where the page draws; undefined before the first. */
export type Thumbnail = () => Promise<Buffer | undefined>;

export function openThumbnail(
  chrome: Pick<Chrome, 'pipe'>,
  options: { metrics?: Metrics | undefined; now?: () => number } = {},
): Thumbnail {
  const { metrics = NO_METRICS, now = () => performance.now() } = options;
  let latest: Buffer | undefined;
  let startedAt = Number.NEGATIVE_INFINITY;
  let capturing: Promise<void> | undefined;

  const update = async (): Promise<void> => {
    const picture = await capture(chrome).catch(() => undefined); // the page is gone or hangs
    metrics.add(CAPTURES, { outcome: picture === undefined ? 'failed' : 'ok' });
    latest = picture ?? latest;
    capturing = undefined;
  };
  return async () => {
    if (capturing === undefined && now() - startedAt >= EVERY_MS) {
      startedAt = now();
      capturing = update();
    }
    await capturing;
    return latest;
  };
}

/** Undefined when no page is open, and for what is no small JPEG: Chrome may be exploited. */
async function capture(chrome: Pick<Chrome, 'pipe'>): Promise<Buffer | undefined> {
  const { active } = await openPages(chrome);
  if (active === undefined) return undefined;
  await using session = await attach(chrome.pipe, active.targetId);
  const frame = session.once('Page.screencastFrame', { timeoutMs: FRAME_TIMEOUT_MS });
  frame.catch(() => undefined); // awaited below, unless the start is refused
  await session.call('Page.startScreencast', FRAME_OPTIONS);
  const { data } = await frame;
  const jpeg = Buffer.from(String(data), 'base64');
  const { width, height } = jpegSize(jpeg) ?? { width: 0, height: 0 };
  const isSmall = width > 0 && width <= FRAME_OPTIONS.maxWidth && height <= FRAME_OPTIONS.maxHeight;
  return isSmall && jpeg.length <= PICTURE_MAX_BYTES ? jpeg : undefined;
}
