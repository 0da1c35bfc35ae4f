/**
 * Waits until Chrome has drawn a page. The wait is in an isolated world of the page, which the
 * page's script cannot change. Clients with `Runtime` enabled see the name of that world.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { TargetSession } from './target-session.ts';

const WORLD = 'tabern';
/** Ours: of a page that hangs. A page that a client pauses runs after a round trip or two. */
const TIMEOUT_MS = 5_000;
/** Ours: Chrome delivers a drawn frame, and the event that a page is covered, a moment later. */
const SETTLED_MS = 200;
/** In a page: settles when it has been drawn, for which it must be visible and not paused. */
const DRAWN = 'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))';
/** Settles when it has been drawn, or runs but is hidden: a paused page's timers wait. */
const RUNS = `(() => {
  let look;
  const hidden = new Promise((done) => {
    look = () => document.hidden && done();
    document.addEventListener('visibilitychange', look);
    setTimeout(look);
  });
  const over = () => document.removeEventListener('visibilitychange', look);
  return Promise.race([${DRAWN}, hidden]).finally(over);
})()`;

/** A page, and a session of the runner on it. */
export type Drawable = { targetId: string; session: TargetSession };

/** Settles when the page has been drawn anew, is gone, or hangs for 5 s. */
export function whenDrawn(page: Drawable): Promise<void> {
  return settled(page, DRAWN);
}

/** As `whenDrawn`, but a hidden page need only run. */
export function whenRunning(page: Drawable): Promise<void> {
  return settled(page, RUNS);
}

async function settled({ targetId, session }: Drawable, expression: string): Promise<void> {
  // a page and its main frame have the same id in Chrome
  const world = { frameId: targetId, worldName: WORLD };
  try {
    const { executionContextId } = await session.call('Page.createIsolatedWorld', world);
    const wanted = { expression, awaitPromise: true, contextId: executionContextId };
    await session.call('Runtime.evaluate', wanted, { timeoutMs: TIMEOUT_MS });
  } catch {
    // the page is gone, or hangs
  }
  await sleep(SETTLED_MS, undefined, { ref: false });
}
