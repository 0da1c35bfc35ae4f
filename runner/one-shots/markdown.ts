/**
 * HTML as markdown: the article of a page by Readability, or all of its body where there is none,
 * written by Turndown. The HTML is a page's: it is parsed here, in the sandbox, within a limit.
 */
import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom';
import TurndownService from 'turndown';
import { Failure } from './failure.ts';
import { addTables } from './tables.ts';

/** In characters. Ours: the trees of a page of that size fit the memory of a thread. */
export const MARKDOWN_MAX_CHARS = 2 << 20;
/** They have no text for a reader. */
const LEFT_OUT = ['script', 'style', 'noscript', 'template', 'iframe', 'svg', 'canvas', 'object'];
const OPTIONS = { headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-' } as const;

// biome-ignore lint/suspicious/noExplicitAny: the program has no types of documents.
type Tree = any;

type Source = {
  /** The address that links are relative to. */
  url: string;
  /** The HTML is one element of a page, and all of it is wanted. */
  isPart: boolean;
};

export function markdownOf(html: string, { url, isPart }: Source): string {
  if (html.length > MARKDOWN_MAX_CHARS) {
    const limit = `the limit for markdown is ${MARKDOWN_MAX_CHARS}`;
    const advice = 'name an element in selector, or take the content';
    throw new Failure('large', `The page has ${html.length} characters; ${limit}: ${advice}.`);
  }
  try {
    const { document } = parseHTML(isPart || !/<body[\s>]/i.test(html) ? bodyOf(html) : html);
    for (const one of document.querySelectorAll(LEFT_OUT.join())) one.remove();
    makeAbsolute(document, url);
    const turndown = new TurndownService(OPTIONS).use(addTables);
    return turndown.turndown(isPart ? document.body : articleOf(document)).trim();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new Failure('large', 'The page is nested too deeply for markdown; take the content.');
  }
}

function bodyOf(html: string): string {
  return `<!doctype html><html><head></head><body>${html}</body></html>`;
}

/** Readability takes the document apart, so its body is kept for a page without an article. */
function articleOf(document: Tree): Tree {
  const body = document.body.cloneNode(true);
  const article = new Readability<Tree>(document, { serializer: (node) => node }).parse();
  if (!article?.content || !article.textContent?.trim()) return body;
  if (!article.title || article.content.querySelector('h1')) return article.content;
  const heading = document.createElement('h1');
  heading.textContent = article.title;
  article.content.prepend(heading);
  return article.content;
}

function makeAbsolute(document: Tree, base: string): void {
  for (const [selector, name] of [
    ['a[href]', 'href'],
    ['img[src]', 'src'],
  ] as const) {
    for (const element of document.querySelectorAll(selector)) {
      const absolute = URL.parse(element.getAttribute(name) ?? '', base);
      // an inlined picture is megabytes without a word
      if (absolute && absolute.protocol !== 'data:') element.setAttribute(name, absolute.href);
      else element.removeAttribute(name);
    }
  }
}
