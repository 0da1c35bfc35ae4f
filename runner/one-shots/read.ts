/** What a page shows, as text: its HTML, its links. Read in an isolated world, within limits. */
import { LINK_MAX_CHARS, LINKS_MAX } from '../../proto/one-shots/messages.ts';
import { Failure } from './failure.ts';
import { elementOf, type Page } from './page.ts';

/** In characters. Ours: as JSON it fits a result. */
export const HTML_MAX_CHARS = 5 << 20;

/** Runs in the page. A number is the length of what is too long. */
const READ_HTML = `(selector, max) => {
  const found = selector === null ? document.documentElement : document.querySelector(selector);
  if (found === null) return null;
  const { doctype } = document;
  const type = selector === null && doctype ? new XMLSerializer().serializeToString(doctype) : '';
  const html = type + found.outerHTML;
  return html.length > max ? html.length : html;
}`;

/** One line for each link: address, tab, text. */
const READ_LINKS = `(selector, max, urlMax) => {
  const found = selector === null ? document : document.querySelector(selector);
  if (found === null) return null;
  const lines = [];
  for (const link of found.querySelectorAll('a[href], area[href]')) {
    if (lines.length === max) break;
    const url = String(link.href);
    if (url.length > urlMax || !/^(https?|mailto|tel|ftp):/.test(url)) continue;
    const text = link.textContent || link.getAttribute('aria-label') || '';
    const plain = text.slice(0, 2000).replace(/[\\s\\p{Cc}]+/gu, ' ').trim();
    lines.push(url + '\\t' + plain.slice(0, 200));
  }
  return lines.join('\\n');
}`;

export async function readHtml(
  page: Page,
  selector: string | undefined,
  maxChars = HTML_MAX_CHARS,
): Promise<string> {
  const html = await read(page, selector, [READ_HTML, maxChars]);
  if (typeof html === 'string') return html;
  const advice = 'name an element in selector';
  const size = `The page has ${html} characters`;
  throw new Failure('large', `${size}; the limit is ${maxChars}: ${advice}.`);
}

export async function readLinks(page: Page, selector: string | undefined): Promise<string> {
  return String(await read(page, selector, [READ_LINKS, LINKS_MAX, LINK_MAX_CHARS]));
}

/** A selector is checked first: in the page it would throw. */
async function read(
  page: Page,
  selector: string | undefined,
  [declaration, ...limits]: [string, ...number[]],
): Promise<string | number> {
  if (selector !== undefined) await elementOf(page.send, selector, 'selector');
  const found = await page.evaluate(declaration, selector ?? null, ...limits);
  if (found !== null) return found;
  throw new Failure('field', 'matches no element of the page.', 'selector');
}
