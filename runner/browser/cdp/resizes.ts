/**
 * Reports that clients have changed the size of a page. Chrome 156 may drop the first frame of the
 * new size, and sends no other one while the page stays as it is (seen: 10 % of pages that were
 * painted right after a resize). So whoever captures a page starts the capture again, but only when
 * the page has been drawn: a capture that starts during the resize can have no frame either.
 */
import { type Drawable, whenDrawn } from './drawing.ts';
import type { Pipe } from './pipe.ts';

/** Commands on a session of the page. */
const OF_PAGE: readonly string[] = [
  'Emulation.setDeviceMetricsOverride',
  'Emulation.clearDeviceMetricsOverride',
  'Emulation.setVisibleSize',
];
/** Commands on a window, of which the relay does not know the pages. */
const OF_WINDOW: readonly string[] = ['Browser.setWindowBounds', 'Browser.setContentsSize'];

const opened = new WeakMap<Pipe, Resizes>();

/** One for each Chrome. */
export function resizes(pipe: Pipe): Resizes {
  const known = opened.get(pipe) ?? new Resizes();
  opened.set(pipe, known);
  return known;
}

export class Resizes {
  readonly #listeners = new Map<() => void, string>(); // with their targets
  readonly #resizedBy = new WeakSet<object>();

  /**
   * Calls the listener when the page has been drawn after a resize; once for several that are sent
   * meanwhile. Returns the function that removes the listener.
   */
  on(page: Drawable, listener: () => void): () => void {
    let isWaiting = false;
    let isWanted = false;
    const onResize = async (): Promise<void> => {
      isWanted = true;
      if (isWaiting) return;
      isWaiting = true;
      while (isWanted) {
        isWanted = false;
        await whenDrawn(page);
        if (this.#listeners.has(start)) listener();
      }
      isWaiting = false;
    };
    const start = (): void => void onResize();
    this.#listeners.set(start, page.targetId);
    return () => void this.#listeners.delete(start);
  }

  /** Reads a command of a client's session on that target; `sentBy` identifies the session. */
  observe(method: string, targetId: string | undefined, sentBy: object): void {
    if (OF_WINDOW.includes(method)) this.#report();
    if (targetId === undefined || !OF_PAGE.includes(method)) return;
    this.#resizedBy.add(sentBy);
    this.#report(targetId);
  }

  /** That session of a client has ended, and with it the size that it has set. */
  remove(targetId: string, sentBy: object): void {
    if (this.#resizedBy.has(sentBy)) this.#report(targetId);
  }

  /** Of all pages unless one is named. */
  #report(targetId?: string): void {
    for (const [listener, of] of this.#listeners) {
      if (targetId === undefined || of === targetId) listener();
    }
  }
}
