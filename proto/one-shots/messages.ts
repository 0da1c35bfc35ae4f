/**
 * What core and the built-in function of one-shots exchange: the function's params, and its result,
 * a text of one line of JSON (the head) and the content after it. Core parses the head alone, whose
 * size it limits: a tenant's process may have written any result.
 */

export type Action = 'screenshot' | 'pdf' | 'content' | 'links' | 'markdown' | 'fetch';

export type WaitUntil = 'load' | 'domcontentloaded' | 'networkidle';

/** As CDP's Network.CookieParam. */
export type Cookie = {
  name: string;
  value: string;
  url?: string | undefined;
  domain?: string | undefined;
  path?: string | undefined;
  expires?: number | undefined;
  httpOnly?: boolean | undefined;
  secure?: boolean | undefined;
  sameSite?: string | undefined;
};

/** Validated by core. Exactly one of `url` and `html`. */
export type OneShotParams = {
  action: Action;
  url?: string | undefined;
  html?: string | undefined;
  waitUntil?: WaitUntil | undefined;
  waitForSelector?: string | undefined;
  /** From the start of the handler to its answer. */
  timeoutMs: number;
  viewport: { width: number; height: number; deviceScaleFactor: number };
  cookies: readonly Cookie[];
  headers: Readonly<Record<string, string>>;
  userAgent?: string | undefined;
  selector?: string | undefined;
  screenshot?: ScreenshotParams;
  pdf?: PdfParams;
  fetch?: FetchParams;
};

export type ScreenshotParams = {
  fullPage: boolean;
  format: 'png' | 'jpeg' | 'webp';
  quality?: number | undefined;
};

/** As CDP's Page.printToPDF; lengths in inches. */
export type PdfParams = {
  paperWidth: number;
  paperHeight: number;
  landscape: boolean;
  printBackground: boolean;
  scale: number;
  pageRanges: string;
  marginTop: number;
  marginRight: number;
  marginBottom: number;
  marginLeft: number;
};

export type FetchParams = {
  allowRedirects: boolean;
  /** HTML as markdown; another content as it is. */
  asMarkdown: boolean;
};

/** Of a resource that was fetched. `encoding`: of the body as it was sent; base64 for no text. */
export type Response = {
  status: number;
  headers: Readonly<Record<string, string>>;
  encoding: string;
};

/** The page that was loaded; of a failure, as far as it came. */
export type Seen = { url: string; title: string; status?: number | undefined };

/**
 * `refused`: an address that is not allowed. `unreachable`: no page was loaded. `timeout`: the time
 * was over. `large`: the answer is above its limit. `field`: a value of the request that only the
 * page can judge.
 */
export type FailureKind = 'refused' | 'unreachable' | 'timeout' | 'large' | 'field';

export type Head = {
  page: Seen;
  /** Of the content; base64 where it is not text. */
  contentType?: string;
  /** Of a fetch. */
  response?: Response | undefined;
  failure?: { kind: FailureKind; message: string; field?: string | undefined };
};

/** In characters, of the head. Ours: a URL of 64 KiB and a title. */
export const HEAD_MAX_CHARS = 128 << 10;
/** In bytes of UTF-8. Ours: 64 leases with it fit one message of 16 MiB. */
export const HTML_MAX_BYTES = 128 << 10;
/** In characters. Ours: longer ones are data, not addresses. */
export const LINK_MAX_CHARS = 2_048;
/** Ours: more are a site map. */
export const LINKS_MAX = 5_000;
/** In pixels, of a picture's side. Ours: Chrome's largest texture. */
export const SIDE_MAX = 16_384;
