/**
 * `viewport`: the size of each page's content, set on its window: one window for all tabs in
 * Chromium, one per page in headless-shell.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { TOOLBAR_HEIGHT, WINDOW } from '../flags.ts';
import type { Page, Pages } from './pages.ts';
import type { Pipe } from './pipe.ts';

export type Viewport = { width?: number; height?: number };

/** Ours: it takes 2 to 30 ms; a page without the new size after a second will not get it. */
const SHOWN_TRIES = 100;
const SHOWN_PAUSE_MS = 10;

/** Settles when the open pages have the size. Rejects when Chrome cannot set it. */
export async function setViewport(
  { pipe }: { pipe: Pipe },
  pages: Pages,
  wanted: Required<Viewport>,
): Promise<void> {
  const size = async ({ targetId }: Page): Promise<void> => {
    const { windowId, bounds } = await pipe.call('Browser.getWindowForTarget', { targetId });
    // another width belongs to a popup or was set by a client; every tab of a window is resized,
    // because Chromium shows more above one than above another
    const { width } = bounds as Viewport;
    if (width !== WINDOW.width && width !== wanted.width) return;
    await pipe.call('Browser.setContentsSize', { windowId, ...wanted });
  };
  const sizeNow = async (page: Page): Promise<void> => {
    await size(page);
    await shown(page, wanted);
  };
  const [first] = pages.open();
  if (first) await fitScreen(first, wanted);
  await Promise.all(pages.open().map(sizeNow));
  pages.onPage((page) => {
    // a page that is gone meanwhile has no size
    size(page).catch(() => undefined);
  });
}

/** The screen is never smaller than a window. A Chrome that cannot resize it keeps its own. */
async function fitScreen({ session }: Page, wanted: Required<Viewport>): Promise<void> {
  const { width, height } = wanted;
  try {
    const { screenInfos } = await session.call('Emulation.getScreenInfos');
    const [screen] = screenInfos as { id: string; width: number; height: number }[];
    const grown = {
      width: Math.max(screen?.width ?? 0, width),
      height: Math.max(screen?.height ?? 0, height + TOOLBAR_HEIGHT),
    };
    if (!screen || (grown.width === screen.width && grown.height === screen.height)) return;
    await session.call('Emulation.updateScreen', { screenId: screen.id, ...grown });
  } catch {
    // Emulation.updateScreen is experimental, and pages work without it
  }
}

/** Waits until the page has its window's size: clients must not see the old one. */
async function shown({ session }: Page, { width }: Required<Viewport>): Promise<void> {
  for (let tries = 0; tries < SHOWN_TRIES; tries += 1) {
    const { cssLayoutViewport } = await session.call('Page.getLayoutMetrics');
    if ((cssLayoutViewport as { clientWidth: number }).clientWidth === width) return;
    await sleep(SHOWN_PAUSE_MS);
  }
}
