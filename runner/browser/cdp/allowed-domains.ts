/**
 * `allowedDomains`: main frames navigate to these domains and their subdomains only. The page's
 * own documents wait for a decision at each hop; no other request is looked at, and a session
 * without the setting intercepts nothing at all.
 */
import type { Page, Pages } from './pages.ts';

/** Documents of frames come too: Chrome knows no narrower pattern. */
const DOCUMENTS = { patterns: [{ resourceType: 'Document', requestStage: 'Request' }] };

type Paused = { requestId: string; frameId: string; request: { url: string } };

/** Rejects when the open pages cannot be guarded: then nobody may drive them. */
export async function keepToDomains(pages: Pages, domains: readonly string[]): Promise<void> {
  const isAllowed = allowing(domains);
  await pages.prepare((page) => guard(page, isAllowed));
}

/** Pure. Addresses that are no web sites (about:, data:) stay what they are. */
export function allowing(domains: readonly string[]): (url: string) => boolean {
  const allowed = domains.map((domain) => hostOf(domain.replace(/^\*\./, '')));
  return (text) => {
    const url = URL.parse(text);
    if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return true;
    const host = url.hostname.replace(/\.$/, '');
    return allowed.some((domain) => host === domain || host.endsWith(`.${domain}`));
  };
}

/** As URLs spell it: lower case, IDNA. What is no host matches nothing. */
function hostOf(domain: string): string {
  return URL.parse(domain.includes('://') ? domain : `http://${domain}`)?.hostname ?? domain;
}

async function guard(page: Page, isAllowed: (url: string) => boolean): Promise<void> {
  const { session, targetId } = page;
  session.on('Fetch.requestPaused', (params) => {
    const { requestId, frameId, request } = params as unknown as Paused;
    // a page's main frame has its target's id
    const isRefused = frameId === targetId && !isAllowed(request.url);
    const settled = isRefused
      ? session.call('Fetch.failRequest', { requestId, errorReason: 'BlockedByClient' })
      : session.call('Fetch.continueRequest', { requestId });
    settled.catch(() => undefined); // the page has gone on without it
  });
  await session.call('Fetch.enable', DOCUMENTS);
}
