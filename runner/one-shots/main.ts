/**
 * The function that runs one-shots: built in, published by core, run in the function host of the
 * project that asks. It returns a text: one line of JSON, then the content
 * (proto/one-shots/messages.ts). A page that fails is an answer too; only a bug throws.
 */
import type { Head, OneShotParams } from '../../proto/one-shots/messages.ts';
import { defineFn } from '../sdk/mod.ts';
import { Failure } from './failure.ts';
import { fetchResource, textOf } from './fetch.ts';
import { markdownOf } from './markdown.ts';
import { openPage, type Page } from './page.ts';
import { readHtml, readLinks } from './read.ts';
import { takeScreenshot } from './screenshot.ts';

/**
 * In bytes of the JSON that the result is. Ours: that of a handler's result is 6 MiB, of which the
 * head takes its part.
 */
const RESULT_MAX_BYTES = 5.8 * (1 << 20);

/** What is read as HTML for markdown; all else stays as it is. */
const HTML = /^(?:text\/html|application\/xhtml\+xml)$/;

type Content = Pick<Head, 'response'> & { contentType: string; content: string };

defineFn<OneShotParams>(
  'one-shots',
  async ({ session }, params) => {
    await using page = await openPage(session.connectUrl, params.timeoutMs);
    try {
      await page.load(params);
      // at once: each is a round trip to the browser
      const [{ content, ...head }, seen] = await Promise.all([
        contentOf(page, params),
        page.seen(),
      ]);
      checkSize(content);
      return answerOf({ page: seen, ...head }, content);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const { kind, message, field } = error;
      return answerOf({ page: await page.seen(), failure: { kind, message, field } }, '');
    }
  },
  { isolation: 'warm' },
);

async function contentOf(page: Page, params: OneShotParams): Promise<Content> {
  const { selector } = params;
  switch (params.action) {
    case 'screenshot': {
      const { screenshot = { fullPage: false, format: 'png' } } = params;
      const content = await takeScreenshot(page, params, screenshot);
      return { contentType: `image/${screenshot.format}`, content };
    }
    case 'pdf': {
      const { data } = await page.send('Page.printToPDF', params.pdf).catch(printFailure);
      return { contentType: 'application/pdf', content: data };
    }
    case 'content':
      return { contentType: 'text/html; charset=utf-8', content: await readHtml(page, selector) };
    case 'links':
      return { contentType: 'text/plain', content: await readLinks(page, selector) };
    case 'markdown': {
      const html = await readHtml(page, selector);
      const { url } = await page.seen();
      const content = markdownOf(html, { url, isPart: selector !== undefined });
      return { contentType: 'text/markdown; charset=utf-8', content };
    }
    case 'fetch':
      return await fetched(page, params);
  }
}

async function fetched(
  page: Page,
  { url = '', fetch = { allowRedirects: false, asMarkdown: false } }: OneShotParams,
): Promise<Content> {
  const found = await fetchResource(page, url, fetch);
  const { response, contentType } = found;
  const content = textOf(found);
  if (!fetch.asMarkdown || !HTML.test(contentType)) return { response, contentType, content };
  const markdown = markdownOf(content, { url: found.url, isPart: false });
  return { response, contentType: 'text/markdown', content: markdown };
}

/** Chrome alone knows how many pages there are. */
function printFailure(error: unknown): never {
  if (error instanceof Failure || !/range/i.test((error as Error).message)) throw error;
  throw new Failure('field', 'names no page of the document.', 'pageRanges');
}

function answerOf(head: Head, content: string): string {
  return `${JSON.stringify(head)}\n${content}`;
}

/** Base64 has no escapes; text may double. */
function checkSize(content: string): void {
  if (content.length * 6 <= RESULT_MAX_BYTES) return;
  const bytes = Buffer.byteLength(JSON.stringify(content));
  if (bytes <= RESULT_MAX_BYTES) return;
  const advice =
    'ask for less: jpeg or webp, a smaller viewport, fewer pages, or one element by selector';
  const size = `${(bytes / (1 << 20)).toFixed(1)} MiB`;
  throw new Failure('large', `The answer has ${size}; the limit is 5.8 MiB encoded: ${advice}.`);
}
