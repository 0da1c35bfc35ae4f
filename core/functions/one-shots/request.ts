/**
 * Checks of a one-shot's request, and its two halves: the params of the function that runs it, and
 * those of its session. Pure.
 */

import type { TakeScreenshotRequest } from '../../../proto/gen/tabern/v1/one_shots.pb.ts';
import type {
  Action,
  Cookie,
  OneShotParams,
  WaitUntil,
} from '../../../proto/one-shots/messages.ts';
import { HTML_MAX_BYTES } from '../../../proto/one-shots/messages.ts';
import { invalidField } from '../../../proto/rpc/errors.ts';
import { inRange, oneOf } from '../../api/checks.ts';
import {
  plainConfig,
  type SessionParams,
  sessionProblem,
} from '../../validation/session-params.ts';

/** The members that every page request has. */
export type PageRequest = Pick<
  TakeScreenshotRequest,
  | ('url' | 'html' | 'waitUntil' | 'waitForSelector' | 'timeout' | 'viewport' | 'cookies')
  | ('context' | 'headers' | 'userAgent' | 'proxies' | 'blockAds')
>;

/** In seconds. Source: one_shots.proto. */
const TIMEOUT = { min: 1, max: 60, unit: ' seconds', usual: 30 };
/** In characters. Ours: that of browsers is 2 MiB, that of most servers 8 KiB. */
const URL_MAX_CHARS = 8_192;
const SELECTOR = { min: 1, max: 1_024, unit: ' characters' };
const USER_AGENT = { min: 1, max: 1_024, unit: ' characters' };
const SIDE = { min: 1, max: 4_096, unit: ' pixels' };
const FACTOR = { min: 0.1, max: 4 };
const COOKIES = { max: 100, unit: ' items' };
const COOKIE_CHARS = { max: 4_096, unit: ' characters' };
const HEADERS = { max: 50, unit: ' items' };
const HEADER_CHARS = { max: 8_192, unit: ' characters' };
const VIEWPORT = { width: 1_280, height: 720, deviceScaleFactor: 1 };
const WAITS: readonly WaitUntil[] = ['load', 'domcontentloaded', 'networkidle'];
const SAME_SITE = ['Strict', 'Lax', 'None'];
/** RFC 9110 5.1 and 5.5. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** They belong to the connection, and Chrome fails the request. */
const HEADERS_REFUSED = ['host', 'content-length', 'connection', 'transfer-encoding', 'upgrade'];

/** Throws INVALID_FIELD for the first wrong member. */
export function pageParams(request: PageRequest, action: Action): OneShotParams {
  const { html, waitForSelector, userAgent, timeout = TIMEOUT.usual } = request;
  const url = checkedSource(request);
  if (waitForSelector !== undefined) checkSelector('waitForSelector', waitForSelector);
  if (userAgent !== undefined) {
    inRange('userAgent', userAgent.length, USER_AGENT);
    if (!HEADER_VALUE.test(userAgent)) throw invalidField('userAgent', 'must be printable.');
  }
  const usual = 'load' as const;
  const given = oneOf('waitUntil', request.waitUntil, { all: WAITS, usual });
  // a selector alone is all that is waited for
  const isSelectorAlone = request.waitUntil === undefined && waitForSelector !== undefined;
  const waitUntil = isSelectorAlone ? undefined : given;
  return {
    action,
    url,
    html,
    waitUntil,
    waitForSelector,
    timeoutMs: inRange('timeout', timeout, TIMEOUT) * 1_000,
    viewport: checkedViewport(request.viewport),
    cookies: checkedCookies(request),
    headers: checkedHeaders(request.headers),
    userAgent,
  };
}

export function checkSelector(field: string, selector: string): void {
  inRange(field, selector.length, SELECTOR);
}

/** The session's params. Its context is loaded and not saved. Throws INVALID_FIELD. */
export function sessionParams(
  { proxies, context, blockAds }: Pick<PageRequest, 'proxies' | 'context' | 'blockAds'>,
  action: Action,
  more: { ignoreCertificateErrors?: boolean } = {},
): SessionParams {
  const { ignoreCertificateErrors } = more;
  const settings = { context: context && { id: context.id }, blockAds, ignoreCertificateErrors };
  const session = plainConfig({
    proxies,
    browserSettings: { ...settings, recordSession: false },
    userMetadata: { oneShot: action },
  }) as SessionParams;
  const wrong = sessionProblem(session);
  if (!wrong) return session;
  const path = wrong.path.replace(/^\.(browserSettings\.)?/, '');
  throw invalidField(path, wrong.problem);
}

function checkedSource({ url, html }: PageRequest): string | undefined {
  if ((url === undefined) === (html === undefined)) {
    throw invalidField('url', 'or `html` is required, and only one of them.');
  }
  if (html === undefined) return checkedUrl(url ?? '');
  if (Buffer.byteLength(html) > HTML_MAX_BYTES) {
    const advice = 'serve a larger page, and send its url';
    throw invalidField('html', `must be at most ${HTML_MAX_BYTES} bytes: ${advice}.`);
  }
  return undefined;
}

/** As Chrome reads it. */
export function checkedUrl(text: string): string {
  inRange('url', text.length, { min: 1, max: URL_MAX_CHARS, unit: ' characters' });
  const parsed = URL.parse(text);
  const isWeb = parsed?.protocol === 'http:' || parsed?.protocol === 'https:';
  if (!parsed || !isWeb) throw invalidField('url', 'must be an http or https URL.');
  if (parsed.username !== '' || parsed.password !== '') {
    throw invalidField('url', 'must have no user and password; send them in headers.');
  }
  return parsed.href;
}

function checkedViewport(given: PageRequest['viewport']): OneShotParams['viewport'] {
  const { width, height, deviceScaleFactor } = {
    ...VIEWPORT,
    ...(plainConfig(given ?? {}) as object),
  };
  return {
    width: inRange('viewport.width', width, SIDE),
    height: inRange('viewport.height', height, SIDE),
    deviceScaleFactor: inRange('viewport.deviceScaleFactor', deviceScaleFactor, FACTOR),
  };
}

function checkedCookies({ cookies, html }: PageRequest): Cookie[] {
  inRange('cookies', cookies.length, COOKIES);
  return cookies.map(({ sameSite, ...cookie }, index) => {
    const field = `cookies[${index}]`;
    if (cookie.name === '') throw invalidField(`${field}.name`, 'is required.');
    for (const name of ['name', 'value', 'url', 'domain', 'path'] as const) {
      inRange(`${field}.${name}`, cookie[name]?.length ?? 0, COOKIE_CHARS);
    }
    const hasPlace = html === undefined || (cookie.url ?? cookie.domain) !== undefined;
    if (!hasPlace) throw invalidField(`${field}.url`, 'or domain is required with html.');
    if (sameSite === undefined || SAME_SITE.includes(sameSite)) return { ...cookie, sameSite };
    throw invalidField(`${field}.sameSite`, `must be one of ${SAME_SITE.join(', ')}.`);
  });
}

function checkedHeaders(given: PageRequest['headers']): Record<string, string> {
  const entries = Object.entries((given ?? {}) as Record<string, unknown>);
  inRange('headers', entries.length, HEADERS);
  const checked = entries.map(([name, value]): [string, string] => {
    const isName = HEADER_NAME.test(name) && !HEADERS_REFUSED.includes(name.toLowerCase());
    if (!isName) throw invalidField('headers', 'has a name that cannot be sent.');
    if (typeof value !== 'string' || !HEADER_VALUE.test(value)) {
      throw invalidField(`headers.${name}`, 'must be a string of printable characters.');
    }
    inRange(`headers.${name}`, value.length, HEADER_CHARS);
    return [name, value];
  });
  return Object.fromEntries(checked);
}
