/** One-shots: one page, loaded once in a session of its own (README.md). */
import {
  type FetchResourceRequest,
  type FetchResourceResponse,
  type OneShotServiceService,
  type PageLink,
  type PdfMargins,
  type PrintPdfRequest,
  ReadContentRequest,
} from '../../../proto/gen/tabern/v1/one_shots.pb.ts';
import {
  type Action,
  LINK_MAX_CHARS,
  LINKS_MAX,
  type OneShotParams,
  type PdfParams,
} from '../../../proto/one-shots/messages.ts';
import { Fault, invalidField } from '../../../proto/rpc/errors.ts';
import { inRange, oneOf } from '../../api/checks.ts';
import type { ProjectCaller, Service } from '../../api/interceptors.ts';
import type { Blobs } from '../../files/blobs.ts';
import { builtIn } from './built-in.ts';
import { checkSelector, type PageRequest, pageParams, sessionParams } from './request.ts';
import { type RunDeps, runOneShot } from './run.ts';
import { webSearch } from './search.ts';

type ElementRequest = PageRequest & Pick<ReadContentRequest, 'selector'>;

const QUALITY = { max: 100 };
const PICTURES = ['png', 'jpeg', 'webp'] as const;
/** In inches, portrait. */
const PAPERS = {
  a4: [8.27, 11.7],
  letter: [8.5, 11],
  legal: [8.5, 14],
  tabloid: [11, 17],
  ledger: [17, 11],
  a0: [33.1, 46.8],
  a1: [23.4, 33.1],
  a2: [16.54, 23.4],
  a3: [11.7, 16.54],
  a5: [5.83, 8.27],
  a6: [4.13, 5.83],
} as const;
const FORMATS = ['raw', 'markdown'] as const;
/** Of a fetch, which has none of a page's options. */
const NO_OPTIONS = ReadContentRequest.create();
const PAPER_NAMES = Object.keys(PAPERS) as (keyof typeof PAPERS)[];
const MARGIN = { max: 5, unit: ' inches' };
const MARGIN_USUAL = 0.4;
const SCALE = { min: 0.1, max: 2 };
const RANGES = /^\s*\d{1,5}(\s*-\s*\d{1,5})?(\s*,\s*\d{1,5}(\s*-\s*\d{1,5})?){0,99}\s*$/;

export function oneShotService(
  options: Omit<RunDeps, 'version'> & { files: Blobs; searchUrl: string | undefined },
): Service<typeof OneShotServiceService, ProjectCaller> {
  const deps = { ...options, version: builtIn(options) };

  function run(request: PageRequest, params: OneShotParams, caller: ProjectCaller) {
    const session = sessionParams(request, params.action);
    return runOneShot(deps, { params, session }, caller);
  }

  function read(request: ElementRequest, action: Action, caller: ProjectCaller) {
    const { selector } = request;
    if (selector !== undefined) checkSelector('selector', selector);
    return run(request, { ...pageParams(request, action), selector }, caller);
  }

  return {
    async takeScreenshot(request, caller) {
      const { selector, fullPage = false, quality } = request;
      const format = oneOf('format', request.format, { all: PICTURES, usual: 'png' });
      if (quality !== undefined) {
        inRange('quality', quality, QUALITY);
        if (format === 'png') throw invalidField('quality', 'is for jpeg and webp.');
      }
      if (selector !== undefined) {
        checkSelector('selector', selector);
        if (fullPage) throw invalidField('fullPage', 'and `selector` exclude each other.');
      }
      const params = { ...pageParams(request, 'screenshot'), selector };
      const screenshot = { fullPage, format, quality };
      const { content, ...shown } = await run(request, { ...params, screenshot }, caller);
      return { ...shown, data: content };
    },

    async printPdf(request, caller) {
      const params = { ...pageParams(request, 'pdf'), pdf: pdfParams(request) };
      const { content, ...shown } = await run(request, params, caller);
      return { ...shown, data: content };
    },

    readContent: (request, caller) => read(request, 'content', caller),

    async readMarkdown(request, caller) {
      const { content, ...shown } = await read(request, 'markdown', caller);
      return { ...shown, markdown: content };
    },

    searchWeb: webSearch(options.searchUrl),
    fetchResource: (request, caller) => fetchResource(deps, request, caller),

    async readLinks(request, caller) {
      const { content, sessionId, page } = await read(request, 'links', caller);
      return { sessionId, page, links: linksOf(content) };
    },
  };
}

/** Its defaults are those of the published service: one request, checked certificates. */
async function fetchResource(
  deps: RunDeps,
  request: FetchResourceRequest,
  caller: ProjectCaller,
): Promise<FetchResourceResponse> {
  const { url, allowRedirects = false, allowInsecureSsl = false, proxies } = request;
  if (request.format === 'json') {
    const message = 'The format json is not served here; take markdown, and extract from that.';
    throw new Fault('NOT_IMPLEMENTED', message);
  }
  const format = oneOf('format', request.format, { all: FORMATS, usual: 'raw' });
  if (request.schema !== undefined) throw invalidField('schema', 'is for the format json.');
  const fetch = { allowRedirects, asMarkdown: format === 'markdown' };
  const params = { ...pageParams({ ...NO_OPTIONS, url }, 'fetch'), fetch };
  const ignoring = { ignoreCertificateErrors: allowInsecureSsl };
  const session = sessionParams({ ...NO_OPTIONS, proxies }, 'fetch', ignoring);
  const found = await runOneShot(deps, { params, session }, caller);
  const { sessionId: id, content, contentType, response } = found;
  const { status: statusCode, encoding, headers } = response;
  return { id, content, contentType, encoding, headers, statusCode };
}

function pdfParams(request: PrintPdfRequest): PdfParams {
  const { landscape = false, printBackground = false, scale = 1, pageRanges = '' } = request;
  const format = oneOf('format', request.format, { all: PAPER_NAMES, usual: 'a4' });
  const [paperWidth, paperHeight] = PAPERS[format];
  if (pageRanges !== '' && !RANGES.test(pageRanges)) {
    throw invalidField('pageRanges', 'must be a list of pages such as 1-3, 5.');
  }
  const margin = (side: keyof PdfMargins) =>
    inRange(`margins.${side}`, request.margins?.[side] ?? MARGIN_USUAL, MARGIN);
  return {
    paperWidth,
    paperHeight,
    landscape,
    printBackground,
    pageRanges,
    scale: inRange('scale', scale, SCALE),
    marginTop: margin('top'),
    marginRight: margin('right'),
    marginBottom: margin('bottom'),
    marginLeft: margin('left'),
  };
}

/** Lines of an address, a tab and a text, from a process that is not trusted. */
function linksOf(content: string): PageLink[] {
  const lines = content === '' ? [] : content.split('\n', LINKS_MAX);
  return lines.map((line) => {
    const [url = '', text = ''] = line.split('\t', 2);
    return { url: url.slice(0, LINK_MAX_CHARS), text };
  });
}
