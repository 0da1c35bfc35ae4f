/**
 * GET /docs: the guide; GET /docs/api: the OpenAPI description as a page, with Swagger UI; GET
 * /llms.txt: the guide for language models. All files are served from here and need no API key,
 * like the description. Both are generated at the installation and read on first use.
 */
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import type { State } from '../http/auth.ts';
import { ASSET, answers, inPath, json, keyless, TEXT, texts } from './openapi-parts.ts';
import { pageHeaders, routeNotFound } from './pages.ts';

/** Generated files are copied from packages or built from gateway/web/docs/guide. */
const FILES: ReadonlyMap<string, string> = new Map([
  ['docs.js', 'docs.js'],
  ['guide.js', 'guide.js'],
  ['guide.css', 'guide.css'],
  ['theme.js', 'theme.js'],
  ['minisearch.js', 'gen/minisearch.js'],
  ['search.json', 'gen/search.json'],
  ['swagger-ui-bundle.js', 'gen/swagger-ui-bundle.js'],
  ['swagger-ui.css', 'gen/swagger-ui.css'],
]);
const FIRST_PAGE = 'quickstart';
const LANGUAGE_MODELS = ['llms.txt', 'llms-full.txt'];

/** Icons are in the style sheet. */
const HEADERS = pageHeaders({ images: "'self' data:", ancestors: "'none'" });

export function addDocs(router: Router<State>): void {
  let pages: ReadonlySet<string> | undefined; // read at the first request
  const send = async (ctx: RouterContext<State>, from: string) => {
    ctx.set(HEADERS);
    // Generated files change only with the service: clients cache them for an hour.
    if (from.startsWith('gen/')) ctx.set('cache-control', 'public, max-age=3600');
    ctx.type = extname(from);
    ctx.body = await read(from);
  };
  router.get('/docs', (ctx) => send(ctx, pageFile(FIRST_PAGE)));
  router.get('/docs/api', (ctx) => send(ctx, 'index.html'));
  router.get('/docs/:file', async (ctx) => {
    const name = ctx.params['file'] ?? '';
    pages ??= pageNames();
    const from = pages.has(name) ? pageFile(name) : FILES.get(name);
    if (from === undefined) throw routeNotFound(ctx);
    await send(ctx, from);
  });
  for (const name of LANGUAGE_MODELS) router.get(`/${name}`, (ctx) => send(ctx, `gen/${name}`));
}

/** The pages of the guide, by name. */
function pageNames(): ReadonlySet<string> {
  const files = readdirSync(new URL('../web/docs/gen/guide/', import.meta.url));
  return new Set(files.map((file) => basename(file, '.html')));
}

function pageFile(name: string): string {
  return `gen/guide/${name}.html`;
}

function read(name: string): Promise<Buffer> {
  return readFile(new URL(`../web/docs/${name}`, import.meta.url));
}

/** The OpenAPI description of these routes. */
export const DOCS_PATHS = {
  '/docs': keyless('docs', 'The first page of the guide.', {
    responses: answers('HTML.', { 'text/html': TEXT }),
  }),
  '/docs/api': keyless('docsApi', 'The API reference as a page.', {
    responses: answers('HTML.', { 'text/html': TEXT }),
  }),
  '/docs/{file}': keyless('docsFile', 'A page of the guide, or an asset of these pages.', {
    parameters: [inPath('file')],
    responses: answers('A page, a script, a style sheet or the search index.', {
      ...ASSET,
      'text/html': TEXT,
      ...json({ type: 'array', items: texts('id', 'page', 'heading', 'text') }),
    }),
  }),
  '/llms.txt': keyless('llms', 'The pages of the guide, for language models.', {
    responses: answers('Text.', { 'text/plain': TEXT }),
  }),
  '/llms-full.txt': keyless('llmsFull', 'The whole guide as one text.', {
    responses: answers('Text.', { 'text/plain': TEXT }),
  }),
};
