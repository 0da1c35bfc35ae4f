/** Tools for one page: its text, its picture. Each call loads the page in a session of its own. */
import { Fault } from '../../../proto/rpc/errors.ts';
import type { JsonObject } from '../../rest/json-validation.ts';
import { firstPart, line } from './short-text.ts';
import { choiceIn, numberIn, picked, type Service, schemas, type Tool, text } from './tool.ts';

const FORMATS = ['markdown', 'html', 'links', 'raw'] as const;
const IMAGE_FORMATS = ['jpeg', 'png', 'webp'] as const;
/** In percent. Ours: text stays readable at a third of the bytes of a png. */
const QUALITY = 80;
/** In bytes: 1 MB as base64, the limit of common clients for an answer. Ours. */
const IMAGE_MAX_BYTES = 750_000;
/** In characters. Ours: more than a page has; JSON has no larger text here. */
const OFFSET = { minimum: 0, maximum: 100_000_000, default: 0 };
const URL_SHOWN_CHARS = 2_000;
const TITLE_SHOWN_CHARS = 200;

type OneShot = { sessionId: string; page: { url: string; title: string; status?: number } };
type Resource = {
  id: string;
  content: string;
  contentType: string;
  encoding: string;
  statusCode: number;
};
type Loaded = { path: string; about: string; content: string };

const LOADING = {
  url: schemas.text('Address of the page: http or https.'),
  waitForSelector: schemas.text('Wait until an element matches this CSS selector.'),
  timeout: { type: 'integer', description: 'Seconds: 1 to 60; 30 when absent.' },
};

const fetchPage: Tool = {
  name: 'fetch',
  description:
    'Reads a page. markdown: its article or text; html: its HTML; links: its links. These load ' +
    'it in a browser, with its scripts. raw: the response as the server sends it.',
  properties: {
    ...LOADING,
    format: schemas.choice(FORMATS, 'What to return.'),
    offset: schemas.whole(OFFSET, 'Characters to skip: to read on after a part.'),
  },
  required: ['url'],
  annotations: { readOnlyHint: true, openWorldHint: true },
  async run(given, service) {
    const format = choiceIn(given, 'format', FORMATS);
    const offset = numberIn(given, 'offset', OFFSET);
    const { path, about, content } = await LOADERS[format](service, picked(given, LOADING_NAMES));
    const rest = (next: number) =>
      `The rest: fetch with offset ${next}, which loads the page again. ` +
      `All of it: POST ${service.link(path)}`;
    return { content: [text(`${about}\n\n${firstPart(content, { offset, rest })}`)] };
  },
};

const LOADING_NAMES = Object.keys(LOADING);

/** By format. */
const LOADERS: Readonly<
  Record<(typeof FORMATS)[number], (service: Service, body: JsonObject) => Promise<Loaded>>
> = {
  async markdown({ call }, body) {
    const answer = await call<OneShot & { markdown: string }>('POST /v1/markdown', { body });
    return { path: '/v1/markdown', about: pageLine(answer), content: answer.markdown };
  },
  async html({ call }, body) {
    const answer = await call<OneShot & { content: string }>('POST /v1/content', { body });
    return { path: '/v1/content', about: pageLine(answer), content: answer.content };
  },
  async links({ call }, body) {
    const answer = await call<OneShot & { links: { url: string; text: string }[] }>(
      'POST /v1/links',
      { body },
    );
    const lines = answer.links.map(({ url, text: words }) => `${url}  ${line(words, 200)}`);
    const content = lines.length === 0 ? 'The page has no links.' : lines.join('\n');
    return { path: '/v1/links', about: pageLine(answer), content };
  },
  async raw({ call }, body) {
    const answer = await call<Resource>('POST /v1/fetch', {
      body: { ...body, allowRedirects: true },
    });
    const { statusCode, contentType, encoding, content } = answer;
    const about = `${statusCode}  ${line(contentType, 200)}`;
    const shown = encoding === 'base64' ? 'The body is not text.' : content;
    return { path: '/v1/fetch', about, content: shown };
  },
};

const screenshot: Tool = {
  name: 'screenshot',
  description: 'Loads a page in a browser of its own and returns a picture of it.',
  properties: {
    ...LOADING,
    fullPage: schemas.flag('The whole page instead of the viewport.'),
    selector: schemas.text('Only the first element that matches this CSS selector.'),
    viewport: {
      type: 'object',
      properties: { width: { type: 'integer' }, height: { type: 'integer' } },
      description: 'Size of the page in CSS pixels; 1280 x 720 when absent.',
    },
    format: schemas.choice(IMAGE_FORMATS, 'Type of the picture.'),
  },
  required: ['url'],
  annotations: { readOnlyHint: true, openWorldHint: true },
  async run(given, { call, link }) {
    const format = choiceIn(given, 'format', IMAGE_FORMATS);
    const body = { ...given, format, ...(format !== 'png' && { quality: QUALITY }) };
    const answer = await call<OneShot & { data: string }>('POST /v1/screenshot', { body });
    const { data } = answer;
    const bytes = Buffer.byteLength(data, 'base64');
    if (bytes > IMAGE_MAX_BYTES) {
      throw new Fault(
        'PAGE_TOO_LARGE',
        `The picture has ${bytes} bytes; an answer has ${IMAGE_MAX_BYTES} at most. Use jpeg, a ` +
          `selector, a smaller viewport or no fullPage; or POST ${link('/v1/screenshot')}.`,
      );
    }
    // not the type that the runner sends: it is not trusted
    return {
      content: [{ type: 'image', data, mimeType: `image/${format}` }, text(pageLine(answer))],
    };
  },
};

function pageLine({ page: { url, title, status }, sessionId }: OneShot): string {
  const parts = [
    line(url, URL_SHOWN_CHARS),
    status === undefined ? undefined : String(status),
    line(title, TITLE_SHOWN_CHARS),
    `session ${sessionId}`,
  ];
  return parts.filter((one) => one !== undefined && one !== '').join('  ');
}

export const PAGE_TOOLS: readonly Tool[] = [fetchPage, screenshot];
