/**
 * One resource as its server sends it: the navigation of the tab is stopped at the response, and
 * its body is read there, within a limit. No page is shown and no script runs, and the request
 * leaves through the session's browser, proxies and egress.
 */
import type { FetchParams, Response } from '../../proto/one-shots/messages.ts';
import { Failure, navigationFailure } from './failure.ts';
import type { Page } from './page.ts';

/** In bytes. Ours: in base64 it fits a result. */
export const BODY_MAX_BYTES = 4 << 20;
/** Ours: more than servers send; in a head with long values, see HEAD_MAX_CHARS. */
const HEADERS_MAX = 100;
const HEADER_MAX_CHARS = 1_000;
const TEXT = /^(?:text\/|application\/(?:[\w.+-]*\+)?(?:json|xml|javascript)\b|image\/svg)/;

type Paused = {
  request: { url: string };
  requestId: string;
  responseErrorReason?: string;
  responseStatusCode?: number;
  responseHeaders?: { name: string; value: string }[];
};
/** `url`: after redirects. */
export type Fetched = { url: string; response: Response; contentType: string; body: Buffer };

export async function fetchResource(
  page: Page,
  url: string,
  { allowRedirects }: FetchParams,
): Promise<Fetched> {
  const stopped = Promise.withResolvers<Paused>();
  page.on('Fetch.requestPaused', (paused: Paused) => {
    if (isPassed(paused, allowRedirects)) {
      const { requestId } = paused;
      page.send('Fetch.continueRequest', { requestId }).catch(stopped.reject);
    } else stopped.resolve(paused);
  });
  const patterns = [{ urlPattern: '*', resourceType: 'Document', requestStage: 'Response' }];
  await page.send('Fetch.enable', { patterns });
  const failed = page.navigate(url).then(() => {
    throw navigationFailure('');
  });
  const paused = await Promise.race([stopped.promise, failed]);
  failed.catch(() => undefined); // the stop of the navigation fails it
  const body = await bodyOf(page, paused);
  await page.send('Fetch.failRequest', { requestId: paused.requestId, errorReason: 'Aborted' });
  return fetchedOf(paused, body);
}

/** A failed request is passed on, too: its navigation has the reason. */
function isPassed(paused: Paused, allowRedirects: boolean): boolean {
  if (paused.responseErrorReason !== undefined) return true;
  return allowRedirects && isRedirect(paused);
}

function isRedirect({ responseStatusCode: status = 0, responseHeaders = [] }: Paused): boolean {
  const hasPlace = responseHeaders.some(({ name }) => name.toLowerCase() === 'location');
  return status >= 300 && status < 400 && hasPlace;
}

/** Chrome keeps no body of a redirect. */
async function bodyOf({ send }: Page, paused: Paused): Promise<Buffer> {
  if (isRedirect(paused)) return Buffer.alloc(0);
  const { requestId } = paused;
  const { stream: handle } = await send('Fetch.takeResponseBodyAsStream', { requestId });
  const parts: Buffer[] = [];
  let size = 0;
  for (;;) {
    const { data, base64Encoded, eof } = await send('IO.read', { handle });
    const part = Buffer.from(data, base64Encoded ? 'base64' : 'utf8');
    size += part.length;
    parts.push(part);
    if (size > BODY_MAX_BYTES) {
      throw new Failure('large', `The response is larger than ${BODY_MAX_BYTES} bytes, the limit.`);
    }
    if (eof) break;
  }
  await send('IO.close', { handle });
  return Buffer.concat(parts);
}

function fetchedOf(
  { request: { url }, responseStatusCode = 0, responseHeaders = [] }: Paused,
  body: Buffer,
): Fetched {
  const headers: Record<string, string> = {};
  for (const { name, value } of responseHeaders.slice(0, HEADERS_MAX)) {
    const key = name.toLowerCase();
    const earlier = headers[key];
    const joined = earlier === undefined ? value : `${earlier}, ${value}`;
    headers[key] = joined.slice(0, HEADER_MAX_CHARS);
  }
  const [contentType = '', ...parameters] = (headers['content-type'] ?? '').split(';');
  const mime = contentType.trim().toLowerCase();
  const encoding = TEXT.test(mime) ? charsetOf(parameters) : 'base64';
  const response = { status: responseStatusCode, headers, encoding };
  return { url, response, contentType: mime, body };
}

/** As the server names it; utf-8 for none, and for one that is not known. */
function charsetOf(parameters: readonly string[]): string {
  const [, name = 'utf-8'] = /charset="?([\w.:-]{1,40})"?/i.exec(parameters.join(';')) ?? [];
  try {
    return new TextDecoder(name).encoding;
  } catch {
    return 'utf-8';
  }
}

/** The body as the text of an answer. */
export function textOf({ response: { encoding }, body }: Fetched): string {
  if (encoding === 'base64') return body.toString('base64');
  return new TextDecoder(encoding).decode(body);
}
