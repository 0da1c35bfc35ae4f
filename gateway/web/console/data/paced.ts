/** Reads that changes cause: few of them, however many changes arrive. */

/** Ours: a person sees a change within a second. */
const PAUSE_MIN_MS = 1_000;
/** Ours: of a slow service, one tenth of the time is spent on one list. */
const PAUSE_FACTOR = 10;
/** As often as without a stream of changes. */
const PAUSE_MAX_MS = 10_000;

/** The document, or that of a test. */
export type Visible = EventTarget & { readonly hidden: boolean };
export type Paced = { request(): void; stop(): void };

/**
 * Calls `read`, which never rejects, for requests: at once when the last call is long ago, else
 * once after a pause that grows with the time that `read` takes. A hidden page reads when it is
 * shown again.
 */
export function paced(read: () => Promise<void>, page = ownPage()): Paced {
  let isWanted = false;
  let isBusy = false;
  let isStopped = false;
  const run = async () => {
    if (isBusy || isStopped || !isWanted || page.hidden) return;
    isWanted = false;
    isBusy = true;
    const startedAt = performance.now();
    await read();
    const wanted = PAUSE_FACTOR * (performance.now() - startedAt);
    const pauseMs = Math.min(PAUSE_MAX_MS, Math.max(PAUSE_MIN_MS, wanted));
    setTimeout(() => {
      isBusy = false;
      void run();
    }, pauseMs);
  };
  const shown = () => void run();
  page.addEventListener('visibilitychange', shown);
  return {
    request() {
      isWanted = true;
      void run();
    },
    stop() {
      isStopped = true;
      page.removeEventListener('visibilitychange', shown);
    },
  };
}

function ownPage(): Visible {
  return (globalThis as unknown as { document: Visible }).document;
}
