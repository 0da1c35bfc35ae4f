/**
 * `allowedDomains`: main frames navigate to these domains and their subdomains only. Documents of
 * main frames are paused and checked at each redirect. Other requests are not checked. A session
 * without the setting intercepts nothing.
 */
import type { Page, Pages } from './pages.ts';

/** Includes documents of subframes: Chrome has no narrower pattern. */
const DOCUMENTS = { patterns: [{ resourceType: 'Document', requestStage: 'Request' }] };

type Paused = { requestId: string; frameId: string; request: { url: string } };

/** Rejects when the open pages cannot be guarded; no client may drive them then. */
export async function keepToDomains(pages: Pages, domains: readonly string[]): Promise<void> {
  const isAllowed = allowing(domains);
  await pages.prepare((page) => guard(page, isAllowed));
}

/** Pure. Addresses that are not web sites (about:, data:) are allowed. */
export function allowing(domains: readonly string[]): (url: string) => boolean {
  const allowed = domains.map((domain) => hostOf(domain.replace(/^\*\./, '')));
  return (text) => {
    const url = URL.parse(text);
    if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return true;
    const host = url.hostname.replace(/\.$/, '');
    return allowed.some((domain) => host === domain || host.endsWith(`.${domain}`));
  };
}

/** In the form of URLs: lower case, IDNA. A string that is not a host matches nothing. */
function hostOf(domain: string): string {
  return URL.parse(domain.includes('://') ? domain : `http://${domain}`)?.hostname ?? domain;
}

async function guard(page: Page, isAllowed: (url: string) => boolean): Promise<void> {
  const { session, targetId } = page;
  session.on('Fetch.requestPaused', (params) => {
    const { requestId, frameId, request } = params as unknown as Paused;
    // the id of a page's main frame is the id of its target
    const isRefused = frameId === targetId && !isAllowed(request.url);
    const settled = isRefused
      ? session.call('Fetch.failRequest', { requestId, errorReason: 'BlockedByClient' })
      : session.call('Fetch.continueRequest', { requestId });
    settled.catch(() => undefined); // rejects when the page has navigated on
  });
  await session.call('Fetch.enable', DOCUMENTS);
}
