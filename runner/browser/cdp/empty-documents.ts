/** Lets a page visit origins without the network: every document is an empty one of ours. */
import type { CallOptions, TargetSession } from './target-session.ts';

const EMPTY_PAGE = Buffer.from('<!doctype html>').toString('base64');

export type Visits = AsyncDisposable & { to(url: string): Promise<void> };

export async function openVisits(page: TargetSession, options: CallOptions = {}): Promise<Visits> {
  page.on('Fetch.requestPaused', ({ requestId }) => {
    const answer = {
      requestId,
      responseCode: 200,
      responseHeaders: [{ name: 'content-type', value: 'text/html' }],
      body: EMPTY_PAGE,
    };
    // Rejects when the page has navigated on and no request waits.
    page.call('Fetch.fulfillRequest', answer).catch(() => undefined);
  });
  // a page with a beforeunload dialog would wait for a response
  page.on('Page.javascriptDialogOpening', () => {
    page.call('Page.handleJavaScriptDialog', { accept: true }).catch(() => undefined);
  });
  await page.call('Page.enable', {}, options);
  await page.call('Network.enable', {}, options);
  await page.call('Network.setBypassServiceWorker', { bypass: true }, options);
  await page.call('Fetch.enable', { patterns: [{ urlPattern: '*' }] }, options);
  return {
    async to(url) {
      // a call right after Page.navigate may still reach the process of the previous page
      const loaded = page.once('Page.loadEventFired', options);
      const going = page.call('Page.navigate', { url }, options);
      const [{ errorText }] = await Promise.all([going, loaded]);
      if (errorText !== undefined) throw new Error(`cannot visit an origin: ${errorText}`);
    },
    async [Symbol.asyncDispose]() {
      await page.call('Fetch.disable');
      await page.call('Network.disable');
      await page.call('Page.disable');
    },
  };
}
