/**
 * `viewport`: the size of each page's content, set on its window: one for all tabs in Chromium, one
 * for each page in headless-shell.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { WINDOW } from './flags.ts';
import type { Page, Pages } from './pages.ts';
import type { Pipe } from './pipe.ts';

export type Viewport = { width?: number; height?: number };

/** Ours: 2 to 30 ms; a page that has not heard of it after a second will, or never. */
const SHOWN_TRIES = 100;
const SHOWN_PAUSE_MS = 10;

/** The open pages have it when this settles. Rejects when Chrome cannot do it. */
export async function setViewport(
  { pipe }: { pipe: Pipe },
  pages: Pages,
  wanted: Required<Viewport>,
): Promise<void> {
  const size = async ({ targetId }: Page): Promise<void> => {
    const { windowId, bounds } = await pipe.call('Browser.getWindowForTarget', { targetId });
    // another width is a popup's own, or one that a client has set; tabs of one window are each
    // told, as Chromium shows more above one than above another
    const { width } = bounds as Viewport;
    if (width !== WINDOW.width && width !== wanted.width) return;
    await pipe.call('Browser.setContentsSize', { windowId, ...wanted });
  };
  const sizeNow = async (page: Page): Promise<void> => {
    await size(page);
    await shown(page, wanted);
  };
  await Promise.all(pages.open().map(sizeNow));
  pages.onPage((page) => {
    // a page that has gone meanwhile has no size
    size(page).catch(() => undefined);
  });
}

/** The page hears of its window's size a moment later; who drives it must not see that. */
async function shown({ session }: Page, { width }: Required<Viewport>): Promise<void> {
  for (let tries = 0; tries < SHOWN_TRIES; tries += 1) {
    const { cssLayoutViewport } = await session.call('Page.getLayoutMetrics');
    if ((cssLayoutViewport as { clientWidth: number }).clientWidth === width) return;
    await sleep(SHOWN_PAUSE_MS);
  }
}
